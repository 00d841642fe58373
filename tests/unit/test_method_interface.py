"""What holds for every method of the registry."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from core.data.noise import uniform_candidates
from core.engine.metrics import disambiguation_metrics
from core.errors import ConfigError, PlainError
from core.methods import METHODS, NEEDS_VERIFIED, USES_TORCH, make_method

OURS = {"studio", "plain", "network"}
QUICK = {name: {"epochs": 15} for name in OURS} | {
    "apml-style": {"epochs": 15, "learning_rate": 0.01, "s": 0.3},
    "pml-mt-style": {"epochs": 15, "learning_rate": 0.01},
    "comes-hl": {"epochs": 15, "learning_rate": 0.01},
    "propml": {"epochs": 15, "learning_rate": 0.01},
}
NOT_EXACT = {
    *OURS,
    "apml-style",
    "pml-mt-style",
    "comes-hl",
    "propml",
    "cleanlab",
    "cleanlab-network",
}
COMPARED = [name for name in METHODS if name not in OURS]


def quick(name):
    if name.startswith("cleanlab"):
        pytest.importorskip("cleanlab")
    return make_method(name, **QUICK.get(name, {}))


def known(name, truth):
    """The first fifteen rows' truth for methods that need some."""
    if name not in NEEDS_VERIFIED:
        return {}
    verified = np.full(truth.shape, np.nan)
    verified[:15] = truth[:15]
    return {"verified": verified}


def small():
    """Six clusters with one or two of four labels each, and one false label per row."""
    rng = np.random.default_rng(1)
    labels = np.array(
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
    )
    at = rng.integers(0, 6, 90)
    X = (2 * rng.standard_normal((6, 8)))[at] + rng.standard_normal((90, 8))
    truth = labels[at].astype(np.uint8)
    return X, uniform_candidates(truth, 1, 0), truth


@pytest.mark.parametrize("name", METHODS)
def test_a_method_fits_predicts_and_tells_candidates_apart(name):
    X, Y, truth = small()
    model = quick(name).fit(X, Y, **known(name, truth))
    assert model.confidences_.shape == Y.shape
    assert (model.confidences_[Y == 0] == 0).all()
    assert 0 <= model.confidences_.min() <= model.confidences_.max() <= 1
    predictions = model.predict_proba(X[:7])
    assert predictions.shape == (7, 4)
    assert 0 <= predictions.min() <= predictions.max() <= 1
    assert set(np.unique(model.predict(X))) <= {0, 1}
    if name != "label-frequency":
        assert disambiguation_metrics(truth, Y, model.confidences_)["auc"] > 0.55


@pytest.mark.parametrize("name", METHODS)
def test_sparse_features_give_what_dense_ones_give(name):
    X, Y, truth = small()
    X = np.maximum(X - np.quantile(X, 0.1, axis=0), 0)  # with zeros both scalings agree
    given = {"unit_rows": False} if name in OURS else {}
    given |= {"scale": "minmax"} if "scale" in quick(name).get_params() else {}
    dense, sparse = (
        quick(name).set_params(**given).fit(part, Y, **known(name, truth))
        for part in (X, sp.csr_matrix(X))
    )
    if name == "cleanlab":  # standardised or scaled, as the benchmark always had it
        assert sparse.predict_proba(sp.csr_matrix(X)).shape == Y.shape
        return
    near = 0.05 if name in NOT_EXACT else 1e-3
    np.testing.assert_allclose(
        dense.predict_proba(X), sparse.predict_proba(sp.csr_matrix(X)), atol=near
    )


@pytest.mark.parametrize("name", METHODS)
def test_clones_have_the_same_settings_and_same_seeds_the_same_results(name):
    X, Y, truth = small()
    model = quick(name)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    one, other = (part.fit(X, Y, **known(name, truth)).predict_proba(X) for part in (model, copy))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", COMPARED)
def test_a_method_works_in_pipelines_and_cross_validation(name):
    if name in NEEDS_VERIFIED:
        pytest.skip("verified rows do not pass through a cross-validation")
    X, Y, _ = small()
    pipeline = make_pipeline(StandardScaler(), quick(name))
    found = cross_val_predict(pipeline, X, Y, cv=2, method="predict_proba")
    assert found.shape == Y.shape


@pytest.mark.parametrize("name", COMPARED)
def test_odd_data_gives_finite_numbers(name):
    X, Y, truth = small()
    X, Y, truth = X[:12].copy(), Y[:12].copy(), truth[:12]
    X[:, 0] = 3  # constant
    X[1] = X[2] = X[3]  # duplicates
    X[4] = 0
    Y[:, 0], Y[:, 1], Y[5], Y[6] = 0, 1, 1, 0  # never, always offered; all, nothing offered
    model = quick(name).fit(X, Y, **known(name, truth))
    assert np.isfinite(model.confidences_).all()
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("name", COMPARED)
def test_votes_stand_for_candidates(name):
    X, Y, truth = small()
    given = known(name, truth)
    votes = np.stack([Y, np.where(Y > 0, 1.0, np.nan)], axis=2)
    with_votes = quick(name).fit(X, votes=votes, **given)
    np.testing.assert_array_equal(
        with_votes.confidences_, quick(name).fit(X, Y, **given).confidences_
    )


def test_mistakes_are_clear_errors():
    X, Y, _ = small()
    with pytest.raises(PlainError, match="ml-knn"):
        make_method("knn")
    with pytest.raises(ConfigError, match="k must be a whole number from 1 to 1000; got 0"):
        make_method("ml-knn", k=0).fit(X, Y)
    with pytest.raises(ConfigError, match="scale must be one of"):
        make_method("pml-ni", scale="log").fit(X, Y)
    with pytest.raises(ConfigError, match="vls or map"):
        make_method("particle", variant="x").fit(X, Y)
    with pytest.raises(NotFittedError):
        make_method("ml-knn").predict(X)
    with pytest.raises(ValueError, match="8 features"):
        make_method("ml-knn").fit(X, Y).predict(X[:, :3])


@pytest.mark.parametrize("name", COMPARED)
def test_every_number_of_a_method_has_a_range_around_its_default(name):
    method = make_method(name)
    assert method.assumes.endswith(".")
    for setting, (low, high, help_text) in method.settings.items():
        assert low <= method.get_params()[setting] <= high
        assert help_text.endswith(".")


def test_only_methods_said_to_load_torch_do():
    X, Y, _ = small()
    names = [n for n in METHODS if n not in USES_TORCH | NEEDS_VERIFIED | {"cleanlab"}]
    code = f"""
import sys, numpy as np
from core.methods import make_method
X, Y = np.array({X[:20].tolist()}), np.array({Y[:20].tolist()})
for name in {names}:
    make_method(name).fit(X, Y).predict(X)
    assert "torch" not in sys.modules, name
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_naming_methods_loads_neither_torch_nor_scikit_learn():
    code = "import sys, core.methods; print(sorted({'torch', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
