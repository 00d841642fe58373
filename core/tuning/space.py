"""What a study searches: settings, their ranges, the budget, and what trials are judged by."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.engine.config import PlainConfig
from core.errors import ConfigError

ObjectiveName = Literal["truth", "decisions", "consistency"]
Metric = Literal["auc", "macro_auc", "instance_ap", "f1"]
Value = int | float | str | bool | None


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            wrong = [one["msg"].removeprefix("Value error, ") for one in error.errors()]
            raise ConfigError("This study is not possible.", "\n".join(wrong)) from None


class Parameter(_Frozen):
    """A setting that is searched: from low to high, or among choices."""

    name: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Value, ...] = ()

    @model_validator(mode="after")
    def _fits_the_setting(self) -> Self:
        if self.name not in RANGES_OF:
            raise ValueError(f"{self.name} cannot be searched; one of {', '.join(RANGES_OF)} can")
        if not self.choices and (self.low is None or self.high is None or self.low >= self.high):
            raise ValueError(f"{self.name}: give low below high, or choices")
        if self.log and not (self.low or 0) > 0:
            raise ValueError(f"{self.name}: a logarithmic range begins above 0")
        for value in self.choices or (self.low, self.high):
            PlainConfig(**{"gamma": 1e-9, self.name: self._as_setting(value)})
        return self

    @property
    def is_whole(self) -> bool:
        return self.name in _WHOLE

    def suggest(self, trial: Any) -> Value:
        """Draw a value for an Optuna trial."""
        if self.choices:
            chosen: Value = trial.suggest_categorical(self.name, list(self.choices))
            return chosen
        if self.is_whole:
            return int(trial.suggest_int(self.name, int(self.low or 0), int(self.high or 0)))
        return float(trial.suggest_float(self.name, self.low, self.high, log=self.log))

    def holds(self, value: Value) -> bool:
        """Whether a value is one that may be drawn."""
        if self.choices:
            return value in self.choices
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and self.low <= value <= self.high  # type: ignore[operator]

    def _as_setting(self, value: Value) -> Value:
        return int(value) if self.is_whole and isinstance(value, float) else value


_WHOLE = ("n_steps", "k", "epochs", "batch_size")

RANGES_OF: dict[str, dict[str, Any]] = {
    "alpha": {"low": 0.001, "high": 0.1, "log": True},
    "beta": {"low": 0.001, "high": 0.1, "log": True},
    "eta": {"low": 0.1, "high": 10.0, "log": True},
    "gamma": {"low": 0.001, "high": 0.1, "log": True},
    "n_steps": {"low": 1, "high": 500},
    "k": {"low": 5, "high": 50},
    "rho": {"low": 1.0, "high": 8.0},
    "loss": {"choices": ("bce", "pmse", "mse", "mae")},
    "balance": {"choices": ("minmax", "mask", "none")},
    "disambiguation": {"choices": ("alternating", "two_stage", "none")},
    "learning_rate": {"low": 0.001, "high": 0.1, "log": True},
    "epochs": {"low": 10, "high": 100},
    "batch_size": {"choices": (16, 32, 64, 128)},
    "weight_decay": {"low": 1e-6, "high": 1e-2, "log": True},
    "momentum": {"low": 0.0, "high": 0.99},
}
"""Where each setting is searched unless told otherwise. The first three are the paper's grid,
{0.001, 0.01, 0.1} for alpha and beta, {0.1, 1, 10} for eta, as ranges."""

PAPER_GRID = ("alpha", "beta", "eta")


class StudySettings(_Frozen):
    """Everything about a study: frozen when it is created."""

    base: PlainConfig = Field(default_factory=PlainConfig)
    parameters: tuple[Parameter, ...] = Field(
        default_factory=lambda: tuple(default_range(name) for name in PAPER_GRID)
    )
    objective: ObjectiveName = "truth"
    metric: Metric = "auc"
    n_trials: Annotated[int, Field(ge=1, le=100_000)] | None = 30
    timeout: Annotated[float, Field(gt=0)] | None = None
    prune: bool = True
    n_workers: int = Field(default=1, ge=1, le=64)
    seed: int = Field(default=0, ge=0, lt=2**31)
    points: tuple[dict[str, Value], ...] = ()

    @model_validator(mode="after")
    def _has_something_to_do(self) -> Self:
        names = [one.name for one in self.parameters]
        if not names or len(set(names)) != len(names):
            raise ValueError("name each setting to search once, and at least one")
        if self.n_trials is None and self.timeout is None:
            raise ValueError("give a budget: trials, or seconds")
        return self

    @property
    def first_points(self) -> list[dict[str, Value]]:
        """What is tried first: what was asked for, or the base's own settings."""
        own = {one.name: getattr(self.base, one.name) for one in self.parameters}
        return [dict(point) for point in self.points] or [
            {one.name: own[one.name] for one in self.parameters if one.holds(own[one.name])}
        ]

    def config(self, values: dict[str, Any]) -> PlainConfig:
        """Return the settings of a trial."""
        return PlainConfig(**{**self.base.model_dump(), **values})


def default_range(name: str) -> Parameter:
    """Return where a setting is searched unless told otherwise."""
    return Parameter(name=name, **RANGES_OF.get(name, {}))


SENSITIVITY: dict[str, tuple[Value, ...]] = {
    "gamma": (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
    "n_steps": (0, 5, 10, 20, 50, 100, 200, 500, None),
    "k": (5, 10, 15, 20, 30, 40, 50),
    "loss": ("bce", "pmse", "mse", "mae"),
}
"""The paper's Figure 2 and Appendix B: how results change with one setting."""


def sensitivity(
    name: str, base: PlainConfig, objective: ObjectiveName = "truth", **more: Any
) -> StudySettings:
    """Return the study that tries each of one setting's values once, all else as in `base`.

    At the exact minimiser gamma says nothing, so it is tried with the paper's 200 steps.
    """
    if name not in SENSITIVITY:
        raise ConfigError("Unknown study.", f"Got {name!r}; one of {', '.join(SENSITIVITY)}.")
    if name == "gamma" and base.n_steps is None:
        base = PlainConfig(**{**base.model_dump(), "n_steps": 200})
    values = [value for value in SENSITIVITY[name] if _fits(base, name, value)]
    return StudySettings(
        base=base,
        parameters=(Parameter(name=name, choices=tuple(values)),),
        objective=objective,
        n_trials=len(values),
        prune=False,
        points=tuple({name: value} for value in values),
        **more,
    )


def _fits(base: PlainConfig, name: str, value: Value) -> bool:
    try:
        PlainConfig(**{**base.model_dump(), name: value})
    except ConfigError:
        return False
    return True
