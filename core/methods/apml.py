"""APML-style: disambiguation with a generator of features and an adversary."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from core.methods.base import Matrix, Setting, Step
from core.methods.epochs import EpochEstimator


class APMLStyle(EpochEstimator):
    """After APML, or PML-GAN (Yan and Guo, AAAI 2021): four networks against one.

    A disambiguator gives z = Y (1 - D~(x)); a predictor F, a generator G from labels to features
    and a discriminator D: D maximises log D(x) + log(1 - D(G(z, e))); the others minimise
    BCE(F(x), z) + a ||G(z, e) - x||^2 - b log D(G(z, e)) + c BCE(F(G(u, e)), u) + s (Y - z) with
    noise e and u the rows of z in another order; terms are means over cells.

    From the abstract: the four networks and their roles. From memory, not verified: the losses,
    batch normalisation in G, Adam. Ours: the price s of what is removed, since z = 0 with F = 0
    would else be perfect (with 3, a candidate is removed where F is below 0.05); hidden layers as
    PLAIN's. Of s in .3, 1, 3 and 10 or 30 epochs the default has the best mean rank in predicting
    the *candidates* of held-out training rows (five sets). The paper's code and text were not
    found; this is not a reproduction.

    Parameters
    ----------
    a, b, c, s : weights as above; epochs, batch_size, learning_rate : of Adam; device : of torch
    """

    assumes = "Features can be made from true labels; false candidates make them worse."
    settings: ClassVar = {
        "a": Setting(0, 1000, "Weight of rebuilding the features."),
        "b": Setting(0, 1000, "Weight of the adversary."),
        "c": Setting(0, 1000, "Weight of predicting what was generated."),
        "s": Setting(0, 1000, "Price of removing a candidate."),
        **EpochEstimator.settings,
    }

    def __init__(
        self,
        a: float = 0.1,
        b: float = 0.01,
        c: float = 0.1,
        s: float = 3.0,
        epochs: int = 30,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.a, self.b, self.c, self.s = a, b, c, s
        self.epochs, self.batch_size, self.learning_rate = epochs, batch_size, learning_rate
        self.seed, self.device = seed, device

    def _iterate(self, X: Any, Y: Matrix, state: Mapping[str, Any]) -> Iterator[Step]:
        import torch

        from core.methods.deep import Standardized, as_matrix, pack, predict, unpack

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._features = Standardized(X, self.device)
            nets = self._networks(Y.shape[1])
            noise = torch.get_rng_state()
        self._predictor = nets["F"]
        Y_all = torch.as_tensor(Y, dtype=torch.float32, device=self._features.device)
        adams = {"learner": ("F", "D~", "G"), "adversary": ("D",)}
        parts = {name: self._adam(nets, of) for name, of in adams.items()}
        parts |= {"nets": nets, "order": torch.Generator().manual_seed(self.seed)}
        parts |= {"noise": noise, "done": torch.zeros(())}
        unpack(state, **parts)

        def confidences() -> Matrix:
            removed = predict(nets["D~"], self._features.rows)
            return as_matrix(Y_all * (1 - removed))

        while parts["done"] < self.epochs:
            with torch.random.fork_rng(devices=[]):  # what is drawn here is drawn nowhere else
                torch.set_rng_state(parts["noise"])
                loss = self._train_epoch(parts, Y_all)
                parts["noise"].copy_(torch.get_rng_state())
            parts["done"] += 1
            yield Step(confidences, lambda at=loss: float(at), lambda: pack(**parts))  # type: ignore[misc]

    def _scores(self, X: Any) -> Matrix:
        from core.methods.deep import as_matrix, predict

        return as_matrix(predict(self._predictor, self._features.of(X)))

    def _networks(self, n_labels: int) -> Any:
        from torch import nn

        from core.methods.deep import network

        d = self._features.width
        nets = {
            "F": network(d, n_labels, n_labels),
            "D~": network(d, n_labels, n_labels),
            "G": network(2 * n_labels, d, n_labels, batch_norm=True),
            "D": network(d, 1, n_labels),
        }
        return nn.ModuleDict(nets).to(self._features.device)

    def _adam(self, nets: Any, names: tuple[str, ...]) -> Any:
        import torch

        weights = [p for name in names for p in nets[name].parameters()]
        return torch.optim.Adam(weights, lr=self.learning_rate, betas=(0.5, 0.999))

    def _train_epoch(self, parts: dict[str, Any], Y: Any) -> Any:
        """Return the mean loss of the learners."""
        import torch
        from torch.nn.functional import softplus

        nets, learner, adversary = parts["nets"], parts["learner"], parts["adversary"]
        losses = []
        for at, x in self._features.batches(self.batch_size, parts["order"]):
            z = _disambiguated(nets["D~"](x), Y[at])
            made = nets["G"](torch.cat([z, torch.randn_like(z)], dim=1))
            if self.b:
                loss = softplus(-nets["D"](x)) + softplus(nets["D"](made.detach()))
                adversary.zero_grad()
                loss.mean().backward()  # type: ignore[no-untyped-call]
                adversary.step()
            learner.zero_grad()
            loss = self._loss(nets, x, Y[at], z, made)
            loss.backward()
            learner.step()
            losses.append(loss.detach())
        return torch.stack(losses).mean()

    def _loss(self, nets: Any, x: Any, y: Any, z: Any, made: Any) -> Any:
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits as bce
        from torch.nn.functional import softplus

        loss = bce(nets["F"](x), z) + self.s * (y - z).mean()
        if self.a:
            loss = loss + self.a * (made - x).square().mean()
        if self.b:
            loss = loss + self.b * softplus(-nets["D"](made)).mean()  # does not saturate
        if self.c:
            u = z.detach()[torch.randperm(len(z), device=z.device)]
            generated = nets["G"](torch.cat([u, torch.randn_like(u)], dim=1))
            loss = loss + self.c * bce(nets["F"](generated), u)
        return loss


def _disambiguated(logits: Any, Y: Any) -> Any:
    """Return z = Y (1 - D~(x))."""
    return Y * (-logits).sigmoid()
