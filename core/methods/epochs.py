"""What methods that train networks in epochs have in common."""

from typing import ClassVar

from core.methods.base import CandidateEstimator, Setting


class EpochEstimator(CandidateEstimator):
    """A method whose networks Adam trains, epoch by epoch, on features they standardise."""

    settings: ClassVar = {
        "epochs": Setting(1, 100_000, "Passes over the data."),
        "batch_size": Setting(2, 1e6, "Instances per step."),
        "learning_rate": Setting(1e-6, 1, "Step size."),
    }
    scale = "none"
    epochs: int
    batch_size: int
    learning_rate: float
    seed: int
    device: str

    @property
    def n_steps(self) -> int:
        return self.epochs
