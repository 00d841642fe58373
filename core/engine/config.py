"""Every hyper-parameter, declared once: default, range, help and the paper's symbol.

The command line, the form on the screen and the documentation are all made from these fields.
Defaults are those of the authors' release, under the paper's letters (the release calls
alpha gamma, beta zeta, eta alpha, and gamma eta).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from core.cluster.address import checked_address
from core.errors import ConfigError

if TYPE_CHECKING:
    from core.data.dataset import CandidateDataset

Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


def _symbol(letter: str) -> dict[str, Any]:
    return {"symbol": letter}


class OtherMethod(BaseModel):
    """A method of `core.methods` that learns in place of PLAIN, with all its settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    settings: tuple[tuple[str, int | float | str | None], ...] = ()

    @field_validator("settings", mode="before")
    @classmethod
    def _as_pairs(cls, given: Any) -> Any:
        return tuple(given.items()) if isinstance(given, Mapping) else given


class PlainConfig(BaseModel):
    """The settings of one training. Immutable; a bad value raises `ConfigError`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    alpha: Weight = Field(
        0.1, description="Weight of the instance graph.", json_schema_extra=_symbol("α")
    )
    beta: Weight = Field(
        0.01, description="Weight of the label graph.", json_schema_extra=_symbol("β")
    )
    eta: Weight = Field(
        1.0, description="Weight of the candidates as given.", json_schema_extra=_symbol("η")
    )
    gamma: float = Field(
        0.01,
        gt=0,
        le=1,
        description="Step size of the propagation.",
        json_schema_extra=_symbol("γ"),
    )
    n_steps: int | None = Field(
        200,
        ge=0,
        le=100_000,
        description="Steps of the propagation; none means its exact minimiser.",
        json_schema_extra=_symbol("T"),
    )
    k: int = Field(
        10,
        ge=1,
        le=1000,
        description="Neighbours of each instance in the instance graph.",
        json_schema_extra=_symbol("k"),
    )
    rho: float = Field(
        3.0,
        gt=0,
        le=20,
        description="Exponent of the cosine similarity; larger trusts near neighbours more.",
        json_schema_extra=_symbol("ρ"),
    )
    balance: Literal["minmax", "mask", "none"] = Field(
        "minmax",
        description="How pseudo-labels are brought to [0, 1]: stretched per label (the paper), "
        "set to zero outside the candidates and clipped, or left as they are.",
    )
    disambiguation: Literal["alternating", "two_stage", "none"] = Field(
        "alternating",
        description="Propagate after every epoch, once before training, or never (plain network).",
    )
    loss: Literal["bce", "pmse", "mse", "mae"] = Field(
        "bce", description="What the network minimises against the pseudo-labels."
    )
    hidden: (
        tuple[Annotated[int, Field(ge=1, le=8192)], Annotated[int, Field(ge=1, le=8192)]] | None
    ) = Field(None, description="Hidden layer sizes; none chooses them by the number of labels.")
    epochs: int = Field(30, ge=1, le=100_000, description="Passes over the data.")
    batch_size: int = Field(32, ge=1, le=1_000_000, description="Instances per gradient step.")
    learning_rate: float = Field(0.01, gt=0, le=10, description="Step size of the network.")
    momentum: float = Field(0.9, ge=0, lt=1, description="Momentum of the network's steps.")
    weight_decay: float = Field(5e-5, ge=0, le=1, description="Shrinkage of the weights.")
    standardize: bool = Field(
        True, description="Bring every feature to mean 0 and standard deviation 1."
    )
    unit_rows: bool = Field(
        False,
        description="Bring the rows of sparse features to length 1 instead of standardising them.",
    )
    members: int = Field(
        1,
        ge=1,
        le=20,
        description="Networks trained side by side, each without its own share of the instances; "
        "an instance is then predicted by those that never saw it. 1 is the paper's network.",
    )
    landmarks: int = Field(
        0,
        ge=0,
        le=10_000,
        description="Size of the kernel regression beside several networks; 0 leaves it out.",
    )
    rounds: int = Field(
        0,
        ge=0,
        le=100,
        description="How often several networks get the confidences so far as new targets; they "
        "begin with the candidates.",
    )
    expected_false: Share | tuple[Share, Share] | None = Field(
        None,
        description="Share of the candidates that is expected to be false, or a range; none is "
        "unknown. A prior: what the data and people's answers show counts more.",
    )
    method: OtherMethod | None = Field(
        None,
        description="Another method that learns in place of PLAIN, and its settings; none: PLAIN.",
    )
    threshold: float = Field(0.7, ge=0, le=1, description="Predictions above it count as labels.")
    seed: int = Field(0, ge=0, lt=2**31, description="Seed of everything random.")
    device: str = Field(
        "auto", description="Where to compute: auto, cpu, cuda or mps.", pattern=r"^[a-z]+(:\d+)?$"
    )
    cluster: str | None = Field(
        None,
        description="Scheduler of a dask cluster that takes part of the work: tls://HOST:PORT, or "
        "tcp://127.0.0.1:PORT on this machine; none computes here.",
        repr=False,  # nothing about a result
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _config_error(error) from None

    @field_validator("cluster")
    @classmethod
    def _is_no_plain_address(cls, given: str | None) -> str | None:
        return None if given is None else checked_address(given)

    @model_validator(mode="after")
    def _step_must_converge(self) -> Self:
        largest = 1 + self.eta + 2 * self.alpha + 2 * self.beta
        if self.n_steps is not None and self.gamma * largest >= 2:
            raise ValueError(
                f"gamma must be below 2 / (1 + eta + 2 alpha + 2 beta) = {2 / largest:.4g}, "
                "or the propagation diverges; lower gamma or set n_steps to none"
            )
        return self

    def suited_to(self, dataset: "CandidateDataset") -> Self:
        """Return these settings for the data: without features nobody has neighbours."""
        return self if dataset.has_features else self.model_copy(update={"alpha": 0.0})

    @property
    def computes_at_once(self) -> bool:
        """Whether this is another method that has no epochs."""
        return self.method is not None and self.epochs == 1

    @property
    def propagation(self) -> dict[str, Any]:
        """What `Propagator` takes of these settings."""
        return {name: getattr(self, name) for name in PROPAGATION}

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> Self:
        """Return the named preset with some fields replaced."""
        if name not in PRESETS:
            raise ConfigError(
                "Unknown preset.", f"Must be one of {', '.join(PRESETS)}; got {name!r}."
            )
        return cls(**{**PRESETS[name], **overrides})


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "studio": {
        "beta": 0.1,
        "n_steps": None,
        "balance": "mask",
        "unit_rows": True,
        "members": 5,
        "landmarks": 1500,
        "rounds": 3,
        "epochs": 12,
        "batch_size": 64,
        "learning_rate": 0.01,
        "weight_decay": 0.001,
    },
}

PROPAGATION = ("alpha", "beta", "eta", "gamma", "n_steps")

ABLATIONS: dict[str, dict[str, Any]] = {
    "PLAIN": {},
    "DNN": {"disambiguation": "none"},
    "w/o LS": {"beta": 0.0},
    "w/o IS": {"alpha": 0.0},
    "two-stage": {"disambiguation": "two_stage", "n_steps": None},
}
"""The paper's ablation study: settings of the one engine."""


def _config_error(error: ValidationError) -> ConfigError:
    lines = []
    for one in error.errors(include_url=False):
        name = str(one["loc"][0]) if one["loc"] else ""
        message = one["msg"].removeprefix("Value error, ")
        given = f"; got {one['input']!r}" if name else ""
        lines.append(f"{name + ': ' if name else ''}{message}{given}")
    known = ", ".join(PlainConfig.model_fields)
    return ConfigError(
        "A setting is not valid.", "\n".join(dict.fromkeys(lines)), f"Settings: {known}."
    )
