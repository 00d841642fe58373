"""One network, trained on candidates with a loss of its own."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from core.methods.base import Matrix, Setting, Step
from core.methods.epochs import EpochEstimator


class OneNetwork(EpochEstimator):
    """PLAIN's network, trained by Adam on standardised features; a method adds its loss.

    Confidences are the predictions of the training rows.
    """

    settings: ClassVar = {
        **EpochEstimator.settings,
        "weight_decay": Setting(0, 1, "Shrinkage of the weights."),
    }
    weight_decay: float

    def _iterate(self, X: Any, Y: Matrix, state: Mapping[str, Any]) -> Iterator[Step]:
        import torch

        from core.methods.deep import Standardized, as_matrix, network, pack, predict, unpack

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._features = Standardized(X, self.device)
            candidates = torch.as_tensor(Y, dtype=torch.float32, device=self._features.device)
            net = network(self._features.width, Y.shape[1], Y.shape[1]).to(candidates.device)
        adam = torch.optim.Adam(
            net.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        order = torch.Generator().manual_seed(self.seed)
        rates, done, self._net = candidates.mean(dim=0), torch.zeros(()), net
        parts = {"net": net, "adam": adam, "order": order, "done": done}
        unpack(state, **parts)
        while done < self.epochs:
            losses = []
            for at, x in self._features.batches(self.batch_size, order):
                adam.zero_grad()
                loss = self._loss(net(x), candidates[at], rates)
                loss.backward()
                adam.step()
                losses.append(loss.detach())
            done += 1
            yield Step(
                lambda: as_matrix(predict(net, self._features.rows)),
                lambda losses=losses: float(torch.stack(losses).mean()),  # type: ignore[misc]
                lambda: pack(**parts),
            )

    def _scores(self, X: Any) -> Matrix:
        from core.methods.deep import as_matrix, predict

        return as_matrix(predict(self._net, self._features.of(X)))

    def _loss(self, logits: Any, candidates: Any, rates: Any) -> Any:
        """Return the loss of a batch; rates are the shares of rows that offer each label."""
        raise NotImplementedError
