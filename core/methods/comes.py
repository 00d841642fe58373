"""COMES-HL: a loss that is right on average although candidates are false."""

from typing import Any, ClassVar

from core.methods.base import Setting
from core.methods.one_network import OneNetwork


class COMESHL(OneNetwork):
    """Consistent learning from candidates, Hamming loss (COMES, ICLR 2026, arXiv 2510.04091).

    If a false label is left out of the candidates with a probability that depends on the label
    alone, instances that do not offer it are a fair sample of those that lack it. With l the
    cross-entropy and pi_j the share of instances that truly have label j, the risk is

    mean_j | E_x[l(g_j, 1)] - (1 - pi_j) E_{x | not offered}[l(g_j, 1)] |
           + (1 - pi_j) E_{x | not offered}[l(g_j, 0)].

    From the paper: assumption, risk, absolute value per label. Our reading: the absolute value is
    around the part that stands for instances that have the label, the one that can fall below zero.
    Ours: pi_j = `true_share` times the share that offers the label (the paper is given the true
    one); expectations are those of a batch; network and Adam.

    Parameters
    ----------
    true_share : of the candidates of every label; epochs, batch_size, learning_rate, weight_decay
    """

    assumes = "False candidates do not depend on the features, and the share of true ones is known."
    settings: ClassVar = {
        "true_share": Setting(0.01, 1, "Share of the candidates that is true."),
        **OneNetwork.settings,
    }

    def __init__(
        self,
        true_share: float = 0.5,
        epochs: int = 30,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.true_share, self.epochs, self.batch_size = true_share, epochs, batch_size
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.seed, self.device = seed, device

    def _loss(self, logits: Any, candidates: Any, rates: Any) -> Any:
        from torch.nn.functional import softplus

        left_out = 1 - candidates
        count = left_out.sum(dim=0).clamp_min(1)
        lacking = 1 - self.true_share * rates
        as_true, as_false = softplus(-logits), softplus(logits)
        having = as_true.mean(dim=0) - lacking * (left_out * as_true).sum(dim=0) / count
        rest = lacking * (left_out * as_false).sum(dim=0) / count
        return (having.abs() + rest).mean()
