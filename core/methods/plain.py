"""PLAIN as a scikit-learn estimator."""

from inspect import Parameter, Signature
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from core.engine.config import PlainConfig
from core.engine.graphs import InstanceGraph, LabelGraph
from core.methods.base import candidate_data, candidate_tags, known_features

FROM_PRESET = "preset"


class PlainClassifier(ClassifierMixin, BaseEstimator):
    """Learn from candidate labels which are true, and predict labels of other instances.

    Parameters
    ----------
    preset : "studio" or "paper"
    instance_graph, label_graph : graphs to use instead of those built from the data
    **settings : any field of `PlainConfig`; "preset" (the default) leaves it to the preset

    Attributes
    ----------
    confidences_ : (n, L), how likely each candidate of the training data is true; 0 elsewhere
    pseudo_labels_ : (n, L), the propagated labels Z
    sources_ : DataFrame with the sensitivity and specificity of each source and their 90 %
        intervals; none unless several sources voted on the same cells
    history_ : the epoch records
    classes_ : the label indices

    Examples
    --------
    >>> from core.data.demo import load_demo
    >>> from core.methods import PlainClassifier
    >>> data = load_demo(n_instances=300)
    >>> model = PlainClassifier(epochs=3).fit(data.features, data.candidates)
    >>> model.confidences_.shape
    (300, 10)
    """

    def __init__(
        self,
        preset: str = "studio",
        instance_graph: InstanceGraph | None = None,
        label_graph: LabelGraph | None = None,
        **settings: Any,
    ) -> None:
        self.preset = preset
        self.instance_graph = instance_graph
        self.label_graph = label_graph
        for name in PlainConfig.model_fields:
            setattr(self, name, settings.pop(name, FROM_PRESET))
        if settings:
            PlainConfig(**settings)  # names the unknown settings

    @property
    def config(self) -> PlainConfig:
        """The settings in force."""
        values = {name: getattr(self, name) for name in PlainConfig.model_fields}
        chosen = {name: value for name, value in values.items() if value != FROM_PRESET}
        return PlainConfig.preset(self.preset, **chosen)

    def fit(self, X: Any, Y: Any = None, votes: Any = None, *, y: Any = None) -> Self:
        """Train on features (n, d) and candidate labels (n, L).

        Parameters
        ----------
        y : the same as Y, by scikit-learn's name
        votes : who said what, where several sources offered labels: (n, L, S) of 1, 0 and NaN (was
            not asked), or a table with the columns instance, label, source and vote, instances and
            labels numbered from 0 ("0", "label0"). Y may then be left out.
        """
        from core.engine.trainer import PlainTrainer

        dataset = candidate_data(self, X, Y, votes, y)
        self._trainer = PlainTrainer(self.config)
        events = self._trainer.epochs(
            dataset, instance_graph=self.instance_graph, label_graph=self.label_graph
        )
        self.history_ = [event for event in events if event.kind == "epoch"]
        self.confidences_ = self._trainer.confidences
        self.pseudo_labels_ = self._trainer.pseudo_labels
        self.sources_ = _source_table(self._trainer.sources)
        self.classes_ = np.arange(dataset.n_labels)
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the predictions (m, L) for the features (m, d), in [0, 1]."""
        X = known_features(self, X)
        return self._trainer.predict_proba(X)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the labels (m, L) whose prediction is above the threshold."""
        return (self.predict_proba(X) > self.config.threshold).astype(np.int64)

    def __sklearn_tags__(self) -> Any:
        return candidate_tags(super().__sklearn_tags__())


def _source_table(found: Any) -> Any:
    if found is None:
        return None
    import pandas as pd

    return pd.DataFrame(found.records())


def _signature() -> Signature:
    """Name every setting, so that `get_params`, `clone` and help know them."""
    own = list(Signature.from_callable(PlainClassifier.__init__).parameters.values())[:-1]
    settings = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=FROM_PRESET)
        for name in PlainConfig.model_fields
    ]
    return Signature([*own, *settings])


PlainClassifier.__init__.__signature__ = _signature()  # type: ignore[attr-defined]
