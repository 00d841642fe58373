import json

import pytest

from core.engine.config import PRESETS, PlainConfig
from core.errors import ConfigError, PlainError


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"alpha": -0.1}, "alpha"),
        ({"k": 0}, "k"),
        ({"rho": 0}, "rho"),
        ({"eta": float("inf")}, "eta"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"loss": "hinge"}, "loss"),
        ({"hidden": [64]}, "hidden"),
        ({"alhpa": 1}, "alhpa"),
        ({"gamma": 1, "alpha": 1}, "gamma"),
        ({"epochs": 0}, "epochs"),
    ],
)
def test_a_bad_setting_is_named_with_its_value(settings, word):
    with pytest.raises(ConfigError) as error:
        PlainConfig(**settings)
    assert word in error.value.detail
    assert isinstance(error.value, PlainError | ValueError)


def test_all_bad_settings_are_told_at_once():
    with pytest.raises(ConfigError) as error:
        PlainConfig(alpha=-1, beta=-2)
    assert "alpha" in error.value.detail
    assert "beta" in error.value.detail


def test_every_setting_has_a_default_a_help_text_and_survives_json():
    for name, field in PlainConfig.model_fields.items():
        assert field.description, name
    config = PlainConfig(n_steps=None, hidden=(10, 20))
    assert PlainConfig(**json.loads(config.model_dump_json())) == config


def test_defaults_are_the_papers():
    config = PlainConfig.preset("paper")
    assert (config.alpha, config.beta, config.eta, config.gamma) == (0.1, 0.01, 1, 0.01)
    assert (config.n_steps, config.k, config.rho, config.epochs) == (200, 10, 3, 30)


def test_presets_exist_and_unknown_ones_do_not():
    for name in PRESETS:
        assert PlainConfig.preset(name, epochs=3).epochs == 3
    with pytest.raises(ConfigError, match="studio"):
        PlainConfig.preset("best")


def test_a_config_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        PlainConfig().alpha = 1
