"""The training: network and propagation take turns every epoch.

The order is the release's: Z is propagated from the candidates before the first epoch (with the
candidates as prediction), then every epoch fits the network to Z, predicts, and propagates anew.
Algorithm 1 of the paper fits the raw candidates first.

With several members (the preset `studio`) the networks are cross-fitted beside other models
(`core.engine.crossfit`): they fit the candidates first and then, a few times, the confidences so
far.

Another method (`core.methods.learner`) takes the place of the network; no propagation follows it.
"""

import platform
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from core.cluster.executors import Executor, open_executor
from core.confidence.level import Level
from core.confidence.reliability import Reliability
from core.data.dataset import CandidateDataset, Features
from core.engine.config import PlainConfig
from core.engine.crossfit import CrossFit
from core.engine.events import EpochRecord, Event, GraphsBuilt, Objective, RunEnded, RunStarted
from core.engine.graphs import InstanceGraph, LabelGraph, build_instance_graph, build_label_graph
from core.engine.metrics import f1, roc_auc
from core.engine.network import Between, Network, Threads, choose_device
from core.engine.pseudo_labels import PseudoLabels, to_host
from core.engine.scaling import Rows, fit_scaling
from core.errors import StopTraining, TrainingError
from core.methods.learner import MethodLearner

Matrix = npt.NDArray[np.float32]


class PlainTrainer:
    """One training. Between events its matrices are those of that moment.

    Parameters
    ----------
    folder : where large arrays go that are needed for a while, the files of a cluster that
        `config.cluster` names, and what its workers did
    executor : runs coarse tasks in place of such a cluster
    """

    def __init__(
        self,
        config: PlainConfig | None = None,
        *,
        folder: Path | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.config = config or PlainConfig()
        self._folder, self._executor = folder, executor
        self.instance_graph: InstanceGraph | None = None
        self.label_graph: LabelGraph | None = None

    def epochs(
        self,
        dataset: CandidateDataset,
        *,
        instance_graph: InstanceGraph | None = None,
        label_graph: LabelGraph | None = None,
        between: Between = None,
        resume: Mapping[str, npt.NDArray[Any]] | None = None,
        targets: Matrix | None = None,
        theta: npt.NDArray[Any] | None = None,
    ) -> Iterator[Event]:
        """Train on the data, telling what happens.

        Parameters
        ----------
        instance_graph, label_graph : replace those built from the data
        between : called before every batch and propagation; it may wait (a pause), or raise
            `StopTraining` to end the training with the results of the last whole epoch
        resume : an earlier `checkpoint()` on the same data, settings and graphs; training goes on
            after it, bit for bit as if it had never stopped
        targets : (n, L), what a review says of every cell; fitted in place of the pseudo-labels
        theta : weights to begin with, of a training with the same settings
        """
        options = (instance_graph, label_graph, between, resume, targets, theta)
        events = self._epochs(dataset, *options)
        threads = Threads(dataset.n_instances * (dataset.n_features + dataset.n_labels))
        with self._connected(), closing(events):
            while True:
                with threads.limited():  # while working, not while the caller does something
                    event = next(events, None)
                if event is None:
                    return
                yield event

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Use the cluster that the settings name, unless an executor was given."""
        if self._executor is not None or self.config.cluster is None:
            yield
            return
        with open_executor(self.config.cluster, self._folder) as self._executor:
            try:
                yield
            finally:
                self._executor = None

    def _begin(
        self,
        dataset: CandidateDataset,
        scaled: Any,
        features: Any,
        instance_graph: InstanceGraph,
        targets: Matrix | None,
        device: torch.device,
    ) -> None:
        """Make the learner and what there is before the first epoch."""
        config = self.config
        self._Y_hat, self._Z, self._confidence = self._propagation.start()
        self._targets = None if targets is None else torch.tensor(targets, device=device)
        self._learner: _OneNetwork | CrossFit | MethodLearner
        if config.method is not None:
            self._learner = MethodLearner(dataset, config, targets, device)
        elif config.members == 1:
            self._learner = _OneNetwork(dataset, config, device)
        else:
            first = self._propagation.first if self._targets is None else self._targets
            self._learner = CrossFit(
                scaled, features, instance_graph, first, config, self._executor
            )

    def _predict_without_networks(self, features: Any) -> None:
        """Let the other models say what there is before the first epoch, where there are such."""
        if isinstance(self._learner, CrossFit):
            self._Y_hat = self._learner.held_out(features, networks=False)
            none = self._Y_hat.new_zeros(())
            found = self._propagation.step(self._Y_hat, self._Z, none, self._confidence)
            self._Z, self._confidence, _ = found

    def _build_graph(self, scaled: Any, device: torch.device) -> InstanceGraph:
        config = self.config
        how: dict[str, Any] = {"device": str(device), "executor": self._executor}
        how["folder"] = self._folder
        return build_instance_graph(scaled, config.k, config.rho, seed=config.seed, **how)

    def _epochs(
        self,
        dataset: CandidateDataset,
        instance_graph: InstanceGraph | None,
        label_graph: LabelGraph | None,
        between: Between,
        resume: Mapping[str, npt.NDArray[Any]] | None,
        targets: Matrix | None,
        theta: npt.NDArray[Any] | None,
    ) -> Generator[Event, None, None]:
        if instance_graph is None:
            self.config = self.config.suited_to(dataset)
        config, start = self.config, perf_counter()
        device = choose_device(config.device if self._executor is None else "cpu")  # as tasks do
        yield _run_started(config, dataset, device)

        self._scaling = fit_scaling(dataset.features, config)
        scaled = self._scaling.view(dataset.features)
        built = perf_counter()
        instance_graph = instance_graph or self._build_graph(scaled, device)
        label_graph = label_graph or build_label_graph(dataset.candidates)
        self.instance_graph, self.label_graph = instance_graph, label_graph
        yield _graphs_built(instance_graph, label_graph, perf_counter() - built)

        features = self._scaling.rows(scaled, device)
        graphs = (instance_graph, label_graph)
        self._propagation = PseudoLabels(config, *graphs, dataset, device, self._executor)
        self._begin(dataset, scaled, features, instance_graph, targets, device)
        del scaled  # perhaps as large as the data
        self._predict_without_networks(features)
        self._epoch = 0
        if theta is not None:
            self._learner.restore({**self._learner.state(), "theta": torch.tensor(theta)})
        if resume is not None:
            self._restore(resume)
        for epoch in range(self._epoch + 1, config.epochs + 1):
            try:
                event = self._train_epoch(epoch, dataset, features, between)
            except StopTraining:
                break
            yield event
        self._propagation.level_is_due |= self._epoch <= self._renewals[0]
        if config.members == 1 or self._epoch < config.epochs:  # the last epoch's are those
            self._confidence = self._propagation.calibrated(self._Y_hat)
        yield RunEnded(
            state="finished" if self._epoch == config.epochs or self._is_done else "stopped",
            epochs=self._epoch,
            seconds=perf_counter() - start,
        )

    def _train_epoch(
        self, epoch: int, dataset: CandidateDataset, features: Any, between: Between
    ) -> Event:
        """Train, predict and propagate once; `StopTraining` leaves the last epoch as it was."""
        clock = [perf_counter()]
        self._set_targets(epoch)
        self._learner.train_epoch(features, between)
        clock.append(perf_counter())
        Y_hat = self._learner.held_out(features)
        clock.append(perf_counter())
        if between is not None:
            between()
        self._Y_hat = Y_hat
        # The last predictions of candidates; later ones are of confidences.
        self._propagation.level_is_due |= epoch == self._renewals[0]
        is_last = epoch == self.config.epochs
        if self.config.disambiguation == "alternating":
            self._Z = Y_hat.new_empty(0)  # its place is needed for the next
        before = (self._Z, self._learner.loss(Y_hat), self._confidence)
        found = self._propagation.step(Y_hat, *before, is_last=is_last)
        self._Z, self._confidence, figures = found
        clock.append(perf_counter())
        self._epoch = epoch
        return self._record(epoch, dataset, figures, clock)

    @property
    def _is_done(self) -> bool:
        """Whether another method came to its end before the epochs it may take."""
        return isinstance(self._learner, MethodLearner) and self._learner.is_done

    @property
    def _renewals(self) -> list[int]:
        """The epochs after which several networks get the confidences as targets, and the last."""
        rounds = self.config.rounds if self.config.members > 1 else 0
        return [(1 + i) * self.config.epochs // (rounds + 1) for i in range(rounds + 1)]

    def _set_targets(self, epoch: int) -> None:
        """Set the targets of this epoch."""
        config = self.config
        if config.members == 1:
            self._learner.set_targets(self._Z if self._targets is None else self._targets)
        elif config.disambiguation == "alternating" and self._targets is None:
            if epoch - 1 in self._renewals:
                found = self._propagation.calibrated(self._Y_hat, targets=True)
                self._learner.set_targets(self._propagation.whole(found))

    def checkpoint(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything a training needs to go on after the last event, as arrays."""
        tensors = {
            **self._learner.state(),
            "Y_hat": self._Y_hat,
            "Z": self._Z,
            "confidence": self._propagation.whole(self._confidence),
            "level": torch.as_tensor(self.level.to_array()),
        }
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        return {"epoch": np.array(self._epoch), **arrays}

    def _restore(self, checkpoint: Mapping[str, npt.NDArray[Any]]) -> None:
        device = self._Z.device
        tensors = {name: torch.tensor(array) for name, array in checkpoint.items()}
        self._learner.restore(tensors)
        self._Y_hat, self._Z = (tensors[name].to(device) for name in ("Y_hat", "Z"))
        self._confidence = self._propagation.candidates_of(tensors["confidence"])
        self._epoch = int(checkpoint["epoch"])
        if "level" in checkpoint:  # not in those of earlier versions
            self._propagation.level = Level.from_array(checkpoint["level"])
            self._propagation.level_is_due = False

    @property
    def level(self) -> Level:
        """What candidates and predictions tell about the share of false candidates."""
        return self._propagation.level

    @property
    def predictions(self) -> Matrix:
        """Y_hat, n x L in [0, 1]: what the network says of the training instances."""
        return to_host(self._Y_hat)

    @property
    def pseudo_labels(self) -> Matrix:
        """Z, n x L in [0, 1]: the propagated labels, balanced."""
        return to_host(self._Z)

    @property
    def confidences(self) -> Matrix:
        """n x L in [0, 1]: how likely each candidate is true; 0 elsewhere.

        With one network they are calibrated only once the training has ended.
        """
        return to_host(self._propagation.whole(self._confidence))

    @property
    def cell_confidences(self) -> Matrix:
        """The same of the candidates alone, in row-major order."""
        return to_host(self._confidence)

    @property
    def sources(self) -> Reliability | None:
        """How reliable each source is, at the end of a training; none without several sources."""
        return self._propagation.reliability(self._Y_hat)

    def predict_proba(self, X: Features) -> Matrix:
        """Return the network's predictions for other instances, m x L in [0, 1]."""
        if isinstance(self._learner, MethodLearner):
            return self._learner.predict_proba(X)
        scaled = self._scaling.apply(X)
        features = self._scaling.rows(scaled, self._Z.device)
        return to_host(self._learner.predict(scaled, features))

    def _record(
        self, epoch: int, dataset: CandidateDataset, values: list[float], clock: list[float]
    ) -> EpochRecord:
        if not np.isfinite(values).all():
            hint = "Lower learning_rate or gamma, or check the features for extreme values."
            raise TrainingError(
                "The training diverged.", f"Loss {values[0]} in epoch {epoch}.", hint
            )
        names = ("prediction", "candidates", "instance_graph", "label_graph")
        clock.append(perf_counter())
        spent = np.diff(clock).tolist()
        return EpochRecord(
            epoch=epoch,
            loss=values[0],
            objective=Objective(**dict(zip(names, values[1:5], strict=True))),
            cells_changed=int(values[5]),
            entropy=values[6],
            seconds=dict(zip(("train", "predict", "propagate", "record"), spent, strict=True)),
            metrics=None if dataset.truth is None else self._metrics(dataset),
        )

    def _metrics(self, dataset: CandidateDataset) -> dict[str, float]:
        """Score the confidences against the truth; for display only, nothing learns from it."""
        offered, cells = dataset.candidates > 0, self.cell_confidences
        truth, kept = np.asarray(dataset.truth), np.zeros(offered.shape, bool)
        kept[offered] = cells > 0.5
        return {"auc": roc_auc(truth[offered], cells), "f1": f1(truth, kept)}


class _OneNetwork:
    """The paper's learner: one network that predicts the instances it is trained on."""

    def __init__(self, dataset: CandidateDataset, config: PlainConfig, device: Any) -> None:
        self._network = Network(dataset.n_features, dataset.n_labels, config, device)
        self.state, self.restore = self._network.state, self._network.restore

    def set_targets(self, targets: Tensor) -> None:
        self._targets = targets

    def train_epoch(self, features: Rows, between: Between) -> None:
        self._network.train_epoch(features, self._targets, between)

    def held_out(self, features: Rows) -> Tensor:
        return self._network.predict(features)

    def predict(self, _: Features, features: Rows) -> Tensor:
        return self._network.predict(features)

    def loss(self, Y_hat: Tensor) -> Tensor:
        return self._network.loss(Y_hat, self._targets)


def _run_started(config: PlainConfig, dataset: CandidateDataset, device: Any) -> RunStarted:
    return RunStarted(
        config=config,
        fingerprint=dataset.fingerprint,
        n_instances=dataset.n_instances,
        n_features=dataset.n_features,
        n_labels=dataset.n_labels,
        device=str(device),
        versions=_versions(),
    )


@cache
def _versions() -> dict[str, str]:
    libraries = ("torch", "faiss-cpu", "scipy", "numpy", "scikit-learn", "plain-studio")
    return {"python": platform.python_version(), **{name: version(name) for name in libraries}}


def _graphs_built(instances: InstanceGraph, labels: LabelGraph, seconds: float) -> GraphsBuilt:
    degrees = np.diff(instances.affinity.indptr)
    return GraphsBuilt(
        seconds=seconds,
        search=instances.search,
        recall=instances.recall,
        n_edges=int(instances.affinity.nnz // 2),
        n_isolated=int((degrees == 0).sum()),
        n_label_edges=int((labels.weights > 0).sum() // 2),
    )
