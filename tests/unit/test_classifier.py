import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from core.engine.config import PlainConfig
from core.errors import ConfigError
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
    with pytest.raises(ValueError, match="256 features"):
        model.predict(demo.features[:, :5])


NOT_ALIKE = {
    name: "its target is of another kind: numbers of classes, not one 0/1 column per label"
    for name in (
        "check_estimators_dtypes",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_classifier_data_not_an_array",
        "check_classifiers_classes",
        "check_classifiers_one_label",
        "check_classifiers_regression_target",
        "check_classifiers_train",
        "check_classifier_not_supporting_multiclass",
        "check_fit2d_1feature",
    )
} | {"check_classifier_multioutput": "labels are cut at the setting `threshold`, not at a half"}


def test_scikit_learns_own_checks_pass_but_for_named_ones():
    model = PlainClassifier("paper", epochs=1, device="cpu")
    told = check_estimator(model, on_fail=None, expected_failed_checks=NOT_ALIKE)
    wrong = [one["check_name"] for one in told if one["status"] == "failed"]
    assert wrong == []
    assert {one["check_name"] for one in told if one["status"] == "xfail"} == set(NOT_ALIKE)


@pytest.mark.parametrize("preset", ["studio", "paper"])
def test_a_fitted_model_and_a_search_survive_pickle_and_joblib(demo, tmp_path, preset):
    X, Y = demo.features[:120], demo.candidates[:120]
    search = GridSearchCV(
        PlainClassifier(preset, epochs=1), {"alpha": [0.1]}, cv=2, scoring="f1_micro"
    ).fit(X, Y)
    wanted = search.best_estimator_.predict_proba(X)
    again = pickle.loads(pickle.dumps(search))
    assert np.array_equal(again.best_estimator_.predict_proba(X), wanted)
    joblib.dump(search, tmp_path / "search.joblib")
    kept = joblib.load(tmp_path / "search.joblib")
    assert np.array_equal(kept.best_estimator_.predict_proba(X), wanted)


def test_names_of_features_are_learned_and_their_order_is_held(demo):
    table = pd.DataFrame(demo.features[:100, :4], columns=["a", "b", "c", "d"])
    model = PlainClassifier(epochs=1).fit(table, y=demo.candidates[:100])
    assert list(model.feature_names_in_) == ["a", "b", "c", "d"]
    assert model.n_features_in_ == 4
    assert model.predict(table).dtype == np.int64
    with pytest.raises(ValueError, match="same order"):
        model.predict(table[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match="requires y"):
        PlainClassifier().fit(table)
