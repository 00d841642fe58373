"""What a training tells as it goes: frozen records of plain values, ready for JSON."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from core.engine.config import PlainConfig


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunStarted(_Event):
    """What is about to run, on what, with which versions."""

    kind: Literal["run_started"] = "run_started"
    config: PlainConfig
    fingerprint: str
    n_instances: int
    n_features: int
    n_labels: int
    device: str
    versions: dict[str, str]


class GraphsBuilt(_Event):
    """The two graphs; `recall` is measured when the neighbour search was approximate."""

    kind: Literal["graphs_built"] = "graphs_built"
    seconds: float
    search: str
    recall: float | None
    n_edges: int
    n_isolated: int
    n_label_edges: int

    @property
    def search_note(self) -> str:
        """How neighbours were searched, and how many of the true ones were found."""
        if self.recall is None or self.recall == 1:
            return self.search
        return f"{self.search}, {self.recall:.1%} of the nearest found"


class Objective(_Event):
    """The four terms of Eq. (2) at the current Z, before balancing, and the prediction Y_hat."""

    prediction: float
    candidates: float
    instance_graph: float
    label_graph: float

    @property
    def total(self) -> float:
        return self.prediction + self.candidates + self.instance_graph + self.label_graph


class EpochRecord(_Event):
    """One pass: the network fitted Z, predicted, and Z was propagated anew.

    Cells and entropy are those of candidate cells; `metrics` is there when truth is.
    """

    kind: Literal["epoch"] = "epoch"
    epoch: int
    loss: float
    objective: Objective
    cells_changed: int
    entropy: float
    seconds: dict[str, float]
    metrics: dict[str, float] | None = None


class RunEnded(_Event):
    """How it ended, after how many epochs."""

    kind: Literal["run_ended"] = "run_ended"
    state: Literal["finished", "stopped", "failed"]
    epochs: int
    seconds: float
    error: str | None = None


Event = RunStarted | GraphsBuilt | EpochRecord | RunEnded
