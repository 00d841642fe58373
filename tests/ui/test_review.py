"""The Review view around its desk: what is missing, what is asked, what answers did."""

import json

import numpy as np
import pytest
from app_stages import PATIENCE, figures, new_app
from finished_run import finished_run
from streamlit.testing.v1 import AppTest

from core.review.session import Query
from core.store import Decision, files
from plain_app.server import preload
from plain_app.services import review
from plain_app.views.review.parts import PARTS


@pytest.fixture
def open_review(stage):
    """Open Review on an ended run, as somebody."""
    stage.run_id = finished_run(stage.space, stage.dataset)

    def open_as(annotator: str = "ann", **address: str) -> AppTest:
        app = new_app()
        app.query_params["run"] = stage.run_id
        if annotator:
            app.query_params["annotator"] = annotator
        app.run()
        app.switch_page("views/review/page.py")
        for name, value in address.items():
            app.query_params[name] = value
        return app.run()

    return open_as


def decide(stage, count: int, annotator: str = "ann", verdict: str = "keep") -> None:
    rows, labels = stage.dataset.candidates.nonzero()
    stage.space.decisions.add_many(
        Decision(
            fingerprint=stage.dataset.fingerprint,
            instance_id=stage.dataset.ids[row],
            label=stage.dataset.label_names[label],
            verdict=verdict,
            annotator=annotator,
            batch=f"{annotator}-{row}",
        )
        for row, label in list(zip(rows, labels, strict=True))[:count]
    )


def desk(app):
    return [one for one in app.get("bidi_component") if one.key == "review.desk"]


def test_very_much_data_is_waited_for_once(open_review, stage, monkeypatch):
    monkeypatch.setattr(preload, "MAX_CELLS", 0)
    app = open_review()
    assert not app.exception
    assert desk(app)
    review._prepared(str(stage.space.folder), stage.run_id).result(PATIENCE)
    assert review.is_prepared(stage.run_id)


def test_without_a_name_it_asks_who_decides(open_review):
    app = open_review("")
    assert not app.exception
    assert not desk(app)
    app.text_input(key="review.name").set_value(" eve ").run()
    assert app.session_state["frame.annotator"] == "eve"
    assert desk(app)


def test_a_name_is_given_by_the_button_too(open_review):
    app = open_review("")
    app.text_input(key="review.name").set_value("eve")
    app.button(key="review.begin").click().run()
    assert app.session_state["frame.annotator"] == "eve"
    assert desk(app)


def test_every_part_draws(stage, open_review):
    decide(stage, 30)
    app = open_review()
    for title in PARTS:
        part(app, title)
        assert not app.exception, title
        assert desk(app), title


def test_the_history_shows_an_answer_of_an_offline_desk_as_late(stage, open_review):
    cell = {"instance_id": stage.dataset.ids[0], "label": stage.dataset.label_names[0]}
    moments = {"time": "2026-01-02T03:04:05+00:00", "received": "2026-01-02T05:04:05+00:00"}
    fields = {"fingerprint": stage.dataset.fingerprint, "verdict": "keep", "annotator": "ann"}
    stage.space.decisions.add(Decision(**cell, **moments, **fields))
    app = part(open_review(), "History")
    assert not app.exception
    assert any("2 h 00 min late" in one.value.to_string() for one in app.dataframe)


def test_the_figures_count_decisions_and_undo_takes_ten_answers_back(stage, open_review):
    decide(stage, 60)
    app = open_review()
    assert next(iter(figures(app).values())) == "60"
    app.button(key="review.undo_many").click().run()
    assert not app.exception
    left = {one.batch for one in stage.space.decisions.latest(stage.dataset.fingerprint)}
    made = {one.batch for one in stage.space.decisions.history(stage.dataset.fingerprint)} - {None}
    assert len(made) - len(left) == 10


def test_a_selection_in_the_address_can_be_dropped(stage, open_review):
    key = review.open_selection(stage.dataset.ids[:7])
    app = open_review(selection=key)
    assert "7 selected" in app.button(key="review.unselect").label
    app.button(key="review.unselect").click().run()
    assert not app.exception
    assert "review.unselect" not in [one.key for one in app.button]


def test_the_overlap_is_stored_for_everyone(open_review):
    app = open_review()
    app.slider(key="review.overlap").set_value(20).run()
    assert not app.exception
    assert review.overlap_share() == 0.2


def part(app: AppTest, title: str) -> AppTest:
    return app.segmented_control(key="review.part").set_value(title).run()


def test_one_decision_is_counted_as_one(stage, open_review):
    decide(stage, 1, "ann")
    app = open_review("ann")
    assert app.button(key="review.undo_many").label == "Undo the last 1 answer, settled cells too"
    assert part(app, "Retrain").button(key="review.retrain").label == "Retrain with 1 decision"


def test_a_run_without_weights_cannot_be_retrained_and_says_so(stage, open_review):
    decide(stage, 20)
    app = part(open_review(), "Retrain")
    app.button(key="review.retrain").click().run()
    assert not app.exception
    assert any("no results to go on from" in one.value for one in app.text)


def test_a_retrained_run_shows_what_decisions_changed(stage, open_review):
    before = finished_run(stage.space, stage.dataset, seed=1)
    decide(stage, 20)
    app = open_review()
    origin = stage.space.runs.folder(stage.run_id) / "review.npz"
    files.write_arrays(origin, run=np.array(before))
    app = part(app, "Retrain")
    assert not app.exception
    assert any("against" in one.value and before[-6:] in one.value for one in app.caption)
    told = figures(app)
    assert int(told["open before"].replace(",", "")) > 0
    assert int(told["settled"].replace(",", "")) > 0


def test_auto_resolve_is_refused_without_random_answers_and_says_what_is_missing(open_review):
    app = part(open_review(), "Finish")
    assert app.button(key="review.auto").disabled
    assert any("59 more must be answered" in one.value for one in app.caption)


def test_labels_are_renamed_merged_and_brought_back(stage, open_review):
    names = list(stage.dataset.label_names)
    app = part(open_review(), "Labels")
    app.text_input(key="review.label_name").set_value("zero").run()
    app.button(key="review.rename").click().run()
    assert stage.space.labels.names(stage.dataset.fingerprint, names)[0] == "zero"
    app.text_input(key="review.label_name").set_value(names[1]).run()
    app.button(key="review.rename").click().run()
    assert any("name is taken" in one.value for one in app.text)
    app.selectbox(key="review.into").set_value(names[1]).run()
    app.button(key="review.merge").click().run()
    assert stage.space.labels.names(stage.dataset.fingerprint, names)[0] == names[1]
    app.button(key="review.label_undo").click().run()
    app.button(key="review.label_undo").click().run()
    assert not app.exception
    assert stage.space.labels.names(stage.dataset.fingerprint, names) == names


def test_disagreements_are_adjudicated(stage, open_review):
    decide(stage, 3, "ann", "keep")
    decide(stage, 3, "bob", "reject")
    app = open_review("cem")
    app.session_state["review.disagreements"] = {"selection": {"rows": [0], "columns": []}}
    part(app, "Agreement")
    app.button(key="review.adjudicate_reject").click().run()
    assert not app.exception
    settled = [
        one for one in stage.space.decisions.latest(stage.dataset.fingerprint) if one.adjudicates
    ]
    assert [(one.annotator, one.verdict) for one in settled] == [("cem", "reject")]


def test_a_run_that_was_preloaded_needs_nothing_made_when_it_is_opened(
    stage, open_review, monkeypatch
):
    preload.preload([stage.run_id, "nobody"])
    monkeypatch.setattr("core.review.load.Reviewer", None)
    monkeypatch.setattr("core.review.reviewer.Companions", None)  # fitted for most likely false
    app = open_review()
    assert not app.exception
    assert not app.error
    assert review.run_review(stage.run_id).ranking(Query("false_first")).questions


def test_order_and_labels_of_an_address_are_asked_for_and_others_are_not(stage, open_review):
    label = stage.dataset.label_names[2]
    app = open_review(**{"review.order": "Most unstable", "review.labels": label})
    assert '"order": "unstable"' in desk_settings(app)
    app = open_review(**{"review.order": "nonsense", "review.labels": "nobody"})
    assert '"order": "worth"' in desk_settings(app)
    assert "review.order" not in app.query_params


def desk_settings(app) -> str:
    return json.dumps(json.loads(desk(app)[0].proto.json), default=str)


def test_a_filter_under_more_is_seen_and_taken_back(open_review):
    app = open_review()
    app.pills(key="review.states").set_value(["settled"]).run()
    assert '"states": ["settled"]' in desk_settings(app)
    app.button(key="review.unfilter").click().run()
    assert not app.exception
    assert '"states"' not in desk_settings(app)


def audit(stage, count: int) -> None:
    """Answer the first of the thirty random cells blind, as the truth says."""
    reviewer, data = review.current_state(stage.run_id).reviewer, stage.dataset
    cells = [(one.row, at) for one in reviewer.questions("thirty") for at in one.cells]
    stage.space.decisions.add_many(
        Decision(
            fingerprint=data.fingerprint,
            instance_id=data.ids[row],
            label=data.label_names[label],
            verdict="keep" if data.truth[row, label] else "reject",
            annotator="ann",
            confidence=float(reviewer.confidences[row, label]),
            sampled=True,
            shown=False,
        )
        for row, label in cells[:count]
    )


def words(app) -> str:
    return " ".join(one.value for one in (*app.caption, *app.info, *app.markdown))


def test_an_audit_is_begun_goes_on_and_ends_with_an_interval(stage, open_review):
    app = open_review()
    assert "audit 0 of 30" in words(app)
    assert "Thirty random answers would tell" in words(app)
    app.button(key="review.audit_start").click().run()
    assert not app.exception
    assert '"order": "thirty"' in desk_settings(app)
    audit(stage, 12)
    assert "audit 12 of 30" in words(app.run())
    audit(stage, 30)
    app.run()
    assert "Audited: by 30 random answers" in words(app)
    app.button(key="review.audit_back").click().run()
    assert '"order": "worth"' in desk_settings(app)


def test_whoever_follows_every_proposal_is_told_and_offered_blind_mode(stage, open_review):
    reviewer, data = review.current_state(stage.run_id).reviewer, stage.dataset
    questions = reviewer.questions("doubtful", limit=60)
    cells = [(one.row, at) for one in questions for at in one.cells][:60]
    stage.space.decisions.add_many(
        Decision(
            fingerprint=data.fingerprint,
            instance_id=data.ids[row],
            label=data.label_names[label],
            verdict="keep" if reviewer.confidences[row, label] >= 0.5 else "reject",
            annotator="ann",
            confidence=float(reviewer.confidences[row, label]),
        )
        for row, label in cells
    )
    app = open_review()
    assert "are what the run proposes" in words(app)
    app.button(key="review.go_blind").click().run()
    assert not app.exception
    assert '"blind": true' in desk_settings(app)
    assert "are what the run proposes" not in words(open_review("bob"))


def test_random_cells_can_be_asked_with_the_proposal_in_sight(open_review):
    app = open_review()
    assert '"show_random"' not in desk_settings(app)
    app.toggle(key="review.blind_random").set_value(False).run()
    assert '"show_random": true' in desk_settings(app)
