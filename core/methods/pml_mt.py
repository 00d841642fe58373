"""PML-MT-style: two networks that teach each other through their moving averages."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from core.methods.base import Matrix, Setting, Step
from core.methods.epochs import EpochEstimator


class PMLMTStyle(EpochEstimator):
    """After PML-MT (Yan, Li and Feng, Knowledge-Based Systems 212, 2021): mutual teaching.

    Two networks, each with a teacher of averaged weights t <- m t + (1 - m) theta. After every
    epoch past the warm-up, P <- keep P + (1 - keep) C with C = Y sigmoid(teacher(X)), rows of C
    divided by their maximum. A network's loss is BCE(o, P of the other)
    + l1 ||o'o/B - P'P/B||^2 / L^2 + l2 mean (o - o_other)^2. The mean of both networks predicts.

    From the abstract: two networks, self-ensemble teachers, refined confidences, a correlation and
    an agreement term. From memory, not verified: every formula and setting. Ours: the correlation
    term is averaged over its L x L entries. The paper's code and text were not found; this is not a
    reproduction.

    Parameters
    ----------
    l1, l2 : weights of correlations and agreement; momentum : m; keep : of the old confidences
    warm_up : epochs on the candidates; epochs, batch_size, learning_rate : of Adam
    device : of torch
    """

    assumes = "Networks that start differently forget false candidates, not true ones."
    settings: ClassVar = {
        "l1": Setting(0, 1000, "Weight of label correlations."),
        "l2": Setting(0, 1000, "Weight of the networks' agreement."),
        "momentum": Setting(0, 1, "How slowly teachers follow."),
        "keep": Setting(0, 1, "How much of the old confidences an epoch keeps."),
        "warm_up": Setting(0, 100_000, "Epochs on the candidates as given."),
        **EpochEstimator.settings,
    }

    def __init__(
        self,
        l1: float = 0.1,
        l2: float = 0.1,
        momentum: float = 0.99,
        keep: float = 0.9,
        warm_up: int = 5,
        epochs: int = 30,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.l1, self.l2, self.momentum, self.keep = l1, l2, momentum, keep
        self.warm_up, self.epochs, self.batch_size = warm_up, epochs, batch_size
        self.learning_rate, self.seed, self.device = learning_rate, seed, device

    def _iterate(self, X: Any, Y: Matrix, state: Mapping[str, Any]) -> Iterator[Step]:
        import torch

        from core.methods.deep import Standardized, as_matrix, pack, unpack

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._features = Standardized(X, self.device)
            candidates = torch.as_tensor(Y, dtype=torch.float32, device=self._features.device)
            pairs = [self._pair(m, candidates) for m in (0, 1)]
        self._students = [pair["student"] for pair in pairs]
        parts = {f"{name}{m}": part for m, pair in enumerate(pairs) for name, part in pair.items()}
        parts["done"] = done = torch.zeros(())
        unpack(state, **parts)
        while done < self.epochs:
            loss = self._train_epoch(pairs, candidates, refine=int(done) + 1 >= self.warm_up)
            done += 1
            yield Step(
                lambda: as_matrix((pairs[0]["P"] + pairs[1]["P"]) / 2),
                lambda loss=loss: float(loss),  # type: ignore[misc]
                lambda: pack(**parts),
            )

    def _scores(self, X: Any) -> Matrix:
        from core.methods.deep import as_matrix, predict

        rows = self._features.of(X)
        one, other = (predict(net, rows) for net in self._students)
        return as_matrix((one + other) / 2)

    def _pair(self, m: int, Y: Any) -> dict[str, Any]:
        """Return a student, its teacher and what trains them."""
        import torch
        from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

        from core.methods.deep import network

        student = network(self._features.width, Y.shape[1], Y.shape[1]).to(Y.device)
        average = get_ema_multi_avg_fn(self.momentum)  # type: ignore[no-untyped-call]
        return {
            "student": student,
            "teacher": AveragedModel(student, multi_avg_fn=average),
            "adam": torch.optim.Adam(student.parameters(), lr=self.learning_rate),
            "order": torch.Generator().manual_seed(2 * self.seed + m),
            "P": Y.clone(),
        }

    def _train_epoch(self, pairs: list[dict[str, Any]], Y: Any, refine: bool) -> Any:
        """Return the mean loss of both."""
        import torch

        from core.methods.deep import predict

        losses = []
        for own, other in (pairs, pairs[::-1]):  # each in an order of its own
            for at, x in self._features.batches(self.batch_size, own["order"]):
                with torch.no_grad():
                    theirs = other["student"](x).sigmoid()
                loss = self._loss(own["student"](x), theirs, other["P"][at])
                own["adam"].zero_grad()
                loss.backward()
                own["adam"].step()
                own["teacher"].update_parameters(own["student"])
                losses.append(loss.detach())
        for pair in pairs if refine else ():
            C = Y * predict(pair["teacher"], self._features.rows)
            C = C / C.amax(dim=1, keepdim=True).clamp_min(1e-6)
            pair["P"].copy_(self.keep * pair["P"] + (1 - self.keep) * C)
        return torch.stack(losses).mean()

    def _loss(self, logits: Any, theirs: Any, P: Any) -> Any:
        from torch.nn.functional import binary_cross_entropy_with_logits as bce

        o = logits.sigmoid()
        together = o.T @ o / len(o) - P.T @ P / len(o)
        return (
            bce(logits, P)
            + self.l1 * together.square().mean()
            + self.l2 * (o - theirs).square().mean()
        )
