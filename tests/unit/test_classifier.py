import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from core.config import PlainConfig
from core.errors import ConfigError, DatasetError
from core.methods import PlainClassifier


def test_it_learns_and_predicts(demo):
    model = PlainClassifier(epochs=5).fit(demo.features, demo.candidates)
    assert model.confidences_.shape == demo.candidates.shape
    assert model.pseudo_labels_.shape == demo.candidates.shape
    assert (model.confidences_[demo.candidates == 0] == 0).all()
    predictions = model.predict_proba(demo.features[:7])
    assert predictions.shape == (7, 10)
    assert set(np.unique(model.predict(demo.features))) <= {0, 1}
    assert len(model.history_) == 5


def test_every_setting_is_a_parameter_and_survives_clone():
    model = PlainClassifier("paper", alpha=0.3, n_steps=None)
    assert set(PlainConfig.model_fields) < set(model.get_params())
    copy = clone(model).set_params(beta=0.2)
    assert copy.config == PlainConfig.preset("paper", alpha=0.3, n_steps=None, beta=0.2)


def test_it_works_in_pipelines_cross_validation_and_search(demo):
    X, Y = demo.features, demo.candidates
    pipeline = make_pipeline(StandardScaler(), PlainClassifier(epochs=2))
    for method in ("predict", "predict_proba"):
        assert cross_val_predict(pipeline, X, Y, cv=3, method=method).shape == Y.shape
    search = GridSearchCV(
        PlainClassifier(epochs=1), {"alpha": [0.01, 0.1]}, cv=2, scoring="f1_micro"
    )
    assert search.fit(X, Y).best_params_["alpha"] in (0.01, 0.1)


def test_sparse_features_are_welcome(demo):
    model = PlainClassifier(epochs=1).fit(sp.csr_matrix(demo.features), demo.candidates)
    assert model.predict_proba(sp.csr_matrix(demo.features[:3])).shape == (3, 10)


def test_mistakes_are_clear_errors(demo):
    with pytest.raises(ConfigError, match="alhpa"):
        PlainClassifier(alhpa=1)
    with pytest.raises(ConfigError):
        PlainClassifier(alpha=-1).fit(demo.features, demo.candidates)
    with pytest.raises(NotFittedError):
        PlainClassifier().predict(demo.features)
    model = PlainClassifier(epochs=1).fit(demo.features, demo.candidates)
    with pytest.raises(DatasetError, match="256 features"):
        model.predict(demo.features[:, :5])
