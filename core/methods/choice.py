"""Choosing a method for a run: its settings, what they may be, and the run's configuration.

Loads no method but the one that is asked for.
"""

from collections.abc import Mapping
from inspect import signature
from typing import Any, NamedTuple

from core.engine.config import PRESETS, OtherMethod, PlainConfig
from core.errors import ConfigError
from core.methods import METHODS, make_method

PLAIN: Mapping[str, str] = {"studio": "studio", "plain": "paper"}
"""Methods that are PLAIN itself, and the presets that make them."""

_OF_THE_RUN = ("seed", "device", "cluster", "expected_false")
"""Settings that a run has whatever learns in it."""

_NOT_CHOSEN = ("seed", "device", "n_jobs")


class MethodSetting(NamedTuple):
    """One setting of a method, as a form shows it."""

    name: str
    default: Any
    help: str
    low: float | None = None  # both ends are none where there are choices
    high: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return isinstance(self.default, int)


class MethodForm(NamedTuple):
    """What a person is told of a method and asked about it."""

    name: str
    assumes: str
    settings: tuple[MethodSetting, ...]
    iterates: bool
    needs_verified: bool


def other_methods() -> list[str]:
    """Return the methods of the registry that no preset and no ablation of PLAIN is."""
    return [name for name, one in METHODS.items() if one.name != "PlainClassifier"]


def method_form(name: str) -> MethodForm:
    """Return what is to be known and chosen of a method."""
    from core.methods import NEEDS_VERIFIED
    from core.methods.base import SCALES

    model = make_method(name)
    fixed = {*METHODS[name].settings, *_NOT_CHOSEN}
    found = []
    for one, parameter in signature(type(model)).parameters.items():
        if one in model.settings:
            low, high, text = model.settings[one]
            found.append(MethodSetting(one, parameter.default, text, low, high))
        elif one == "scale" and one not in fixed:
            text = "Features brought to [0, 1], to mean 0 and deviation 1, or left as they are."
            found.append(MethodSetting(one, parameter.default, text, choices=SCALES))
    return MethodForm(name, model.assumes, tuple(found), model.n_steps > 1, name in NEEDS_VERIFIED)


def method_config(name: str, settings: Mapping[str, Any] | None = None) -> PlainConfig:
    """Return the configuration of a run in which a method learns.

    settings : the method's own, and `expected_false`, `seed`, `device` and `cluster` of the run

    Raises
    ------
    PlainError
        No such method, or a setting that it has not, or that is out of range.
    """
    given = dict(settings or {})
    if name in METHODS and METHODS[name].name == "PlainClassifier":
        own = dict(METHODS[name].settings)
        return PlainConfig.preset(own.pop("preset"), **{**own, **given})
    of_run = {key: given.pop(key) for key in _OF_THE_RUN if key in given}
    model = make_method(name)
    known = [key for key in model.get_params() if key not in _OF_THE_RUN]
    if unknown := [key for key in given if key not in known]:
        hint = f"Settings of {name}: {', '.join([*known, *_OF_THE_RUN])}."
        raise ConfigError("This method has no such setting.", ", ".join(unknown), hint)
    model.set_params(**given)
    model.check_settings()
    chosen = {key: value for key, value in model.get_params().items() if key in known}
    return PlainConfig(
        **{
            **PRESETS["studio"],
            **_ALONE,
            **of_run,
            "epochs": model.n_steps,
            "threshold": model.threshold,
            "method": OtherMethod(name=name, settings=tuple(chosen.items())),
        }
    )


def settings_used(config: PlainConfig) -> dict[str, Any]:
    """Return the settings that a run learns with, by name: of a method its own and the run's.

    A method's own bear its name: the same letter means something else elsewhere.
    """
    if config.method is None:
        return config.model_dump(exclude={"method"})
    of_run = config.model_dump(include={*_OF_THE_RUN, "epochs", "threshold"})
    method = config.method.name
    own = {f"{method} {name}": value for name, value in config.method.settings}
    return {"method": method, **own, **of_run}


_ALONE: dict[str, Any] = {"disambiguation": "none", "members": 1, "landmarks": 0, "rounds": 0}
"""What a run of `studio` has beside the method; its graphs stay."""
