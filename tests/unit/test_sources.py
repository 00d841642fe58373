import json

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.feature_extraction.text import TfidfVectorizer
from typer.testing import CliRunner
from vote_table import vote_table

from core.bench.crowds import simulate
from core.cli import app
from core.confidence.calibration import calibrate
from core.confidence.reliability import reliability
from core.confidence.sources import SourceModel, source_model
from core.data.dataset import CandidateDataset
from core.data.votes import Votes
from core.engine.config import PlainConfig
from core.engine.metrics import f1, roc_auc
from core.engine.trainer import PlainTrainer
from core.formats import read, write
from core.methods import PlainClassifier

KINDS = ("good", "good", "good", "careless", "always yes")


def world(seed=0, n=500, n_labels=6, kinds=KINDS, sd=1.0):
    """Truth of known probability, and a crowd's votes on it."""
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(-1, sd, n_labels) + rng.normal(0, 2, (n, n_labels)))
    truth = (rng.random(p.shape) < p).astype(np.uint8)
    return truth, simulate(truth, kinds, seed), p


def dense(votes):
    V = np.full((*votes.shape, votes.n_sources), np.nan)
    for i, k in votes.answered:
        V[i, :, k] = 0
    V[tuple(votes.no.T)] = 0
    V[tuple(votes.yes.T)] = 1
    return V


def log_posterior(model, V, x):
    """The penalised likelihood that EM climbs, written out vote by vote."""
    seen, right = expit(model.coins.log_odds)
    total = 0.0
    for i, j in np.ndindex(V.shape[:2]):
        p = expit(model.rate[j] + (0 if x is None else model.slope * x[i, j]))
        if_true, if_false = p, 1 - p
        asked = False
        for k, vote in enumerate(V[i, j]):
            if not np.isnan(vote):
                asked = True
                if_true *= seen[k, j] if vote else 1 - seen[k, j]
                if_false *= 1 - right[k, j] if vote else right[k, j]
        total += np.log(if_true + if_false) if asked else 0.0
    return total


def test_the_posterior_of_a_cell_is_bayes_rule_over_the_votes():
    _, crowd, _ = world(n=12, n_labels=3)
    model = SourceModel.fit(crowd.votes)
    seen, right = expit(model.coins.log_odds)
    V = dense(crowd.votes)
    found = model.posterior(np.broadcast_to(model.rate, V.shape[:2]))
    for i, j in np.ndindex(V.shape[:2]):
        odds = np.exp(model.rate[j])
        for k in np.flatnonzero(~np.isnan(V[i, j])):
            yes = V[i, j, k] == 1
            odds *= seen[k, j] / (1 - right[k, j]) if yes else (1 - seen[k, j]) / right[k, j]
        assert found[i, j] == pytest.approx(odds / (1 + odds), rel=1e-9)


@pytest.mark.parametrize("with_predictions", [False, True])
def test_em_climbs_the_likelihood_to_a_point_that_small_changes_do_not_better(with_predictions):
    _truth, crowd, p = world(n=60, n_labels=3, kinds=("good", "good", "careless"))
    V, x = dense(crowd.votes), logit(np.clip(p, 0.002, 0.998)) if with_predictions else None
    start = SourceModel._begin(SourceModel.fit(crowd.votes).ballots)
    model = SourceModel.fit(crowd.votes)
    if with_predictions:
        start, model = model, model.refit(p)
        start = type(start)(start.ballots, start.coins, 0 * start.rate, 1.0, start.no_weight)
    assert log_posterior(model, V, x) > log_posterior(start, V, x)


def test_votes_and_labels_in_another_order_say_the_same():
    _, crowd, p = world(n=200)
    V = dense(crowd.votes)
    rng = np.random.default_rng(0)
    rows, labels, sources = (rng.permutation(size) for size in V.shape)
    moved = Votes.from_array(V[np.ix_(rows, labels, sources)])
    one = SourceModel.fit(crowd.votes).refit(p)
    other = SourceModel.fit(moved).refit(p[np.ix_(rows, labels)])
    a = one.confidences(crowd.votes.candidates, None, p)[np.ix_(rows, labels)]
    b = other.confidences(moved.candidates, None, p[np.ix_(rows, labels)])
    assert np.allclose(a, b, atol=1e-6)


def test_a_vote_listed_is_a_vote_answered():
    """Whether a no is implied by an answer or listed does not matter."""
    _, crowd, _ = world(n=150)
    votes = crowd.votes
    no = np.argwhere(dense(votes) == 0)
    listed = Votes(votes.sources, votes.yes, np.empty((0, 2)), no, votes.shape)
    a, b = (SourceModel.fit(one) for one in (votes, listed))
    # Choosers are looked for in whole answers only.
    prior = np.broadcast_to(a.rate, votes.shape)
    assert np.allclose(a.posterior(prior), b.posterior(prior), atol=1e-9)
    assert np.array_equal(votes.n_asked, listed.n_asked)


def test_who_always_says_yes_is_found_and_says_nothing():
    _truth, crowd, _ = world(n=800)
    model = SourceModel.fit(crowd.votes)
    found = reliability(model, crowd.votes.candidates)
    assert found.says_little[4]
    assert not found.says_little[:3].any()
    assert found.specificity.high[4] < 0.15
    yes = np.zeros(crowd.votes.shape)
    yes[tuple(crowd.votes.yes[crowd.votes.yes[:, 2] == 4, :2].T)] = 1
    alone = (yes > 0) & (crowd.votes.n_yes == 1) & (crowd.votes.n_asked > 1)
    confidences = model.confidences(crowd.votes.candidates, None, None)
    assert confidences[alone].mean() < 0.15


def test_reliability_intervals_hold_the_truth_nine_times_in_ten():
    inside, total = 0, 0
    for seed in range(12):
        truth, crowd, _ = world(seed, n=300)
        found = reliability(SourceModel.fit(crowd.votes), crowd.votes.candidates)
        for rate, true in zip(
            (found.sensitivity, found.specificity), crowd.mean_rates(truth), strict=True
        ):
            inside += int(((rate.low <= true) & (true <= rate.high)).sum())
            total += len(true)
    assert 0.82 <= inside / total <= 0.98


def test_votes_and_predictions_together_are_better_than_either():
    truth, crowd, p = world()
    offered = crowd.votes.candidates > 0
    votes = SourceModel.fit(crowd.votes)
    alone = votes.confidences(crowd.votes.candidates, None, None)
    both = calibrate(crowd.votes.candidates, None, p, sources=votes).confidences
    without = calibrate(crowd.votes.candidates, None, p).confidences
    auc = [roc_auc(truth[offered], part[offered]) for part in (both, alone, without)]
    assert auc[0] > max(auc[1:]) + 0.01


def test_people_who_choose_one_label_do_not_speak_against_the_others():
    """Four people name one of the labels that hold: a label named once mostly holds."""
    rng = np.random.default_rng(0)
    n, truth, V = 400, np.zeros((400, 3)), np.zeros((400, 3, 4))
    for i in range(n):
        true = rng.choice(3, rng.choice([1, 2, 3], p=[0.5, 0.4, 0.1]), replace=False)
        truth[i, true] = 1
        taste = rng.dirichlet(np.ones(len(true)))
        for k in range(4):
            wrong = rng.random() < 0.07
            V[i, rng.integers(3) if wrong else rng.choice(true, p=taste), k] = 1
    votes = Votes.from_array(V)
    offered = votes.candidates > 0
    confidences = SourceModel.fit(votes).confidences(votes.candidates, None, None)
    once = offered & (votes.n_yes == 1)
    assert abs(confidences[once].mean() - truth[once].mean()) < 0.25
    kept = offered & (confidences > 0.5)
    resolved, given = (f1(truth * offered, part) for part in (kept, offered))
    assert resolved > given - 0.005


def four_people(seed, n=500):
    """Texts of which four people each name a label, now and then two; about 15 % of what they
    offer is false. The words say nothing."""
    rng = np.random.default_rng(seed)
    truth, V = np.zeros((n, 3), bool), np.zeros((n, 3, 4))
    for i in range(n):
        true = rng.choice(3, rng.choice([1, 2, 3], p=[0.55, 0.4, 0.05]), replace=False)
        truth[i, true] = True
        taste = rng.dirichlet(np.ones(len(true)))
        for k in range(4):
            for _ in range(1 + (rng.random() < 0.1)):
                wrong = rng.random() < 0.12
                V[i, rng.integers(3) if wrong else rng.choice(true, p=taste), k] = 1
    texts = [" ".join(f"w{word}" for word in rng.zipf(1.3, 25) % 2000) for _ in range(n)]
    return truth, Votes.from_array(V), TfidfVectorizer(dtype=np.float32).fit_transform(texts)


@pytest.mark.parametrize("seed", [0, 1])
def test_with_texts_that_say_nothing_a_crowd_is_no_worse_than_its_votes_and_labels_as_given(seed):
    truth, votes, X = four_people(seed)
    offered = votes.candidates > 0
    true = truth & offered
    assert 0.12 < 1 - true[offered].mean() < 0.18
    trainer = PlainTrainer(PlainConfig.preset("studio", epochs=4))
    for _ in trainer.epochs(CandidateDataset(X, None, votes=votes)):
        pass
    alone = SourceModel.fit(votes).confidences(votes.candidates, None, None)
    for confidences in (alone, trainer.confidences):
        auc = [roc_auc(true[offered], one[offered]) for one in (confidences, votes.n_yes)]
        assert auc[0] > auc[1] - 0.01
        assert f1(true, confidences >= 0.5) > f1(true, offered) - 0.005


def test_decisions_tell_about_the_sources():
    truth, crowd, _ = world(n=200, kinds=("good", "careless", "careless"))
    decided = np.full(truth.shape, np.nan)
    decided[::2] = truth[::2]
    true, _ = crowd.mean_rates(truth)
    without, told = (
        reliability(SourceModel.fit(crowd.votes, part), crowd.votes.candidates, decided=part)
        for part in (None, decided)
    )
    error = [np.abs(found.sensitivity.value - true).mean() for found in (without, told)]
    width = [(one.sensitivity.high - one.sensitivity.low).mean() for one in (without, told)]
    assert error[1] < error[0]
    assert width[1] < width[0]


def test_one_source_or_sources_that_never_meet_are_not_compared():
    truth, crowd, _ = world(n=100)
    V = dense(crowd.votes)
    assert source_model(None) is None
    assert source_model(Votes.from_array(V[:, :, :1])) is None
    apart = np.full_like(V, np.nan)
    for i in range(len(V)):
        apart[i, :, i % 5] = truth[i]
    assert source_model(Votes.from_array(apart)) is None
    assert source_model(crowd.votes) is not None


def test_with_one_source_a_training_is_that_of_its_candidates():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 5)), (rng.random((60, 4)) < 0.4).astype(np.uint8)
    config = PlainConfig.preset("studio", epochs=2)
    found = []
    for votes in (None, Votes.from_array(Y[:, :, None])):
        trainer = PlainTrainer(config)
        for _ in trainer.epochs(CandidateDataset(X, Y, votes=votes)):
            pass
        assert trainer.sources is None
        found.append(trainer.confidences)
    assert np.array_equal(*found)


def test_a_training_with_votes_goes_on_after_a_checkpoint_bit_for_bit():
    _truth, crowd, p = world(n=120)
    data = CandidateDataset(p, None, votes=crowd.votes)
    whole = PlainTrainer(PlainConfig.preset("studio", epochs=4))
    kept = [whole.checkpoint() for event in whole.epochs(data) if event.kind == "epoch"]
    resumed = PlainTrainer(whole.config)
    for _ in resumed.epochs(data, resume=kept[1]):
        pass
    assert np.array_equal(resumed.confidences, whole.confidences)


def test_the_classifier_takes_votes_and_tells_of_the_sources():
    _truth, crowd, p = world(n=120)
    V = dense(crowd.votes)
    model = PlainClassifier(epochs=2).fit(p, votes=V)
    assert list(model.sources_.source) == [f"source{k}" for k in range(5)]
    assert model.sources_.says_little.tolist()[4]
    assert PlainClassifier(epochs=1).fit(p, crowd.votes.candidates).sources_ is None


def test_the_paper_s_network_does_not_repeat_the_votes_it_was_fitted_to():
    _truth, crowd, p = world(n=120)
    trainer = PlainTrainer(PlainConfig.preset("paper", epochs=2))
    for _ in trainer.epochs(CandidateDataset(p, None, votes=crowd.votes)):
        pass
    alone = SourceModel.fit(crowd.votes).confidences(crowd.votes.candidates, None, None)
    assert np.allclose(trainer.confidences, alone, atol=1e-3)


def test_votes_on_the_command_line_reach_the_labels_and_their_provenance(tmp_path):
    truth, crowd, p = world(n=60, n_labels=3)
    ids, labels = [f"i{i}" for i in range(60)], ("cat", "dog", "owl")
    data = CandidateDataset(p, crowd.votes.candidates, labels, ids, truth=truth)
    write(data, tmp_path / "data.npz")
    vote_table(crowd.votes, ids, labels).to_csv(tmp_path / "votes.csv", index=False)
    files = [str(tmp_path / "data.npz"), "--votes", str(tmp_path / "votes.csv")]
    checked = CliRunner().invoke(app, ["check", *files, "--json"])
    assert json.loads(checked.stdout)["summary"]["n_sources"] == 5
    out = tmp_path / "clean.npz"
    done = CliRunner().invoke(app, ["clean", files[0], str(out), *files[1:], "--set", "epochs=2"])
    assert done.exit_code == 0, done.output
    about = json.loads((tmp_path / "clean.npz.provenance.json").read_text())
    assert [one["source"] for one in about["sources"]] == sorted(crowd.votes.sources)
    assert read(out).dataset.votes is not None
