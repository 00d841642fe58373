"""ProPML: at least one candidate is true, everything else is false."""

from typing import Any, ClassVar

from core.methods.base import Setting
from core.methods.one_network import OneNetwork


class ProPML(OneNetwork):
    """Probability partial multi-label learning (ProPML, arXiv 2403.07603).

    -log sum_{j in S} sigma(f_j) - alpha sum_{j not in S} log(1 - sigma(f_j)), S the candidates.

    Verified against the authors' code: the loss. There the first term is shifted only where logits
    are very low; here it is one log-sum-exp of log sigma everywhere. Rows without candidates have
    the second term only. Ours: network and Adam.

    Parameters
    ----------
    alpha : weight of what was not offered; epochs, batch_size, learning_rate, weight_decay
    """

    assumes = "Every instance has at least one true candidate, and nothing true was left out."
    settings: ClassVar = {
        "alpha": Setting(0, 1000, "Weight of labels that were not offered."),
        **OneNetwork.settings,
    }

    def __init__(
        self,
        alpha: float = 1.0,
        epochs: int = 30,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.alpha, self.epochs, self.batch_size = alpha, epochs, batch_size
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.seed, self.device = seed, device

    def _loss(self, logits: Any, candidates: Any, rates: Any) -> Any:
        from torch.nn.functional import logsigmoid, softplus

        offered = candidates > 0
        chosen = logsigmoid(logits).masked_fill(~offered, float("-inf"))
        some = offered.any(dim=1)
        found = -chosen[some].logsumexp(dim=1).sum()
        return (found + self.alpha * softplus(logits)[~offered].sum()) / len(logits)
