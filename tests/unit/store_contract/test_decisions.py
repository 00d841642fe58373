"""What holds of decisions on every database."""

from collections import Counter

import numpy as np
import pytest
import sqlalchemy as sa
from store_actors import answer, killed_at

from core.errors import DatasetNotFound, StoreError
from core.store import CurrentDecisions, Decision, schema


class TestDecisions:
    @pytest.fixture
    def decide(self, workspace, data):
        def add(verdict, annotator="ann", instance="1", label="cat", **more) -> int:
            cell = {"fingerprint": data, "instance_id": instance, "label": label}
            return workspace.decisions.add(
                Decision(verdict=verdict, annotator=annotator, **cell, **more)
            )

        return add

    @pytest.fixture
    def verdicts(self, workspace, data):
        return lambda: [
            (d.instance_id, d.label, d.verdict) for d in workspace.decisions.latest(data)
        ]

    def test_a_decision_keeps_all_it_was_told(self, workspace, data):
        given = Decision(
            uid="one",
            fingerprint=data,
            instance_id="naïve 'id'",
            label="\U0001f600",
            verdict="unsure",
            annotator="ann",
            run_id="r",
            confidence=0.1 + 0.2,
            shown=False,
            seconds=1.5,
        )
        assert workspace.decisions.add(given) == 1
        (stored,) = workspace.decisions.history(data)
        assert stored == given.model_copy(update={"id": stored.id})
        assert stored.id is not None

    def test_sent_again_it_is_ignored(self, decide, workspace, data):
        assert decide("keep", uid="same") == 1
        assert decide("reject", uid="same") == 0
        again = workspace.decisions.history(data)
        more = [replaced_uid(again[0], uid) for uid in ("same", "new", "new")]
        assert workspace.decisions.add_many(more) == 1
        assert workspace.decisions.add_many([]) == 0
        assert [d.uid for d in workspace.decisions.history(data)] == ["same", "new"]

    def test_the_latest_of_a_cell_wins(self, decide, verdicts, workspace, data):
        decide("keep")
        decide("reject", annotator="bob")
        decide("unsure", instance="2")
        assert verdicts() == [("1", "cat", "reject"), ("2", "cat", "unsure")]
        both = workspace.decisions.by_annotator(data)
        assert {name: [d.verdict for d in found] for name, found in both.items()} == {
            "ann": ["keep", "unsure"],
            "bob": ["reject"],
        }

    def test_undo_steps_back_as_often_as_it_is_asked(self, decide, verdicts, workspace, data):
        for verdict in ("keep", "reject", "unsure"):
            decide(verdict)
        for verdict in ("reject", "keep"):
            decide("undo")
            assert verdicts() == [("1", "cat", verdict)]
        decide("undo")
        decide("undo")  # nothing is left to undo
        assert verdicts() == []
        decide("reject")
        assert verdicts() == [("1", "cat", "reject")]
        assert workspace.decisions.count(data) == 8

    def test_decisions_sent_together_keep_their_order(self, verdicts, workspace, data):
        cell = {"fingerprint": data, "instance_id": "1", "label": "cat", "annotator": "ann"}
        sent = ["keep", "reject", "unsure", "undo", "undo", "reject", "undo"] * 200
        assert workspace.decisions.add_many(Decision(verdict=v, **cell) for v in sent) == 1400
        assert [d.verdict for d in workspace.decisions.history(data)] == sent
        assert verdicts() == [("1", "cat", "keep")]

    def test_undo_is_of_the_annotator_and_the_cell(self, decide, verdicts):
        decide("keep")
        decide("reject", annotator="bob")
        decide("keep", label="dog")
        decide("undo")
        assert verdicts() == [("1", "cat", "reject"), ("1", "dog", "keep")]
        decide("undo", annotator="bob")
        assert verdicts() == [("1", "dog", "keep")]

    def test_history_tells_everything_of_a_cell(self, decide, workspace, data):
        decide("keep")
        decide("undo")
        decide("keep", label="dog")
        decide("keep", instance="2")
        history = workspace.decisions.history
        assert [d.verdict for d in history(data, "1", "cat")] == ["keep", "undo"]
        assert len(history(data, "1")) == 3
        assert len(history(data, label="cat")) == 3

    @pytest.mark.parametrize(
        "wrong",
        [
            {"verdict": "maybe"},
            {"annotator": ""},
            {"label": "a\0b"},
            {"instance_id": "\ud800"},
            {"confidence": float("nan")},
        ],
    )
    def test_what_cannot_be_stored_is_refused_with_the_field(self, decide, data, wrong):
        fields = {"fingerprint": data, "instance_id": "1", "label": "a", "annotator": "b"}
        with pytest.raises(StoreError, match=next(iter(wrong))):
            Decision(**{**fields, "verdict": "keep", **wrong})

    def test_decisions_need_data_of_this_workspace_and_come_all_or_none(self, workspace, data):
        cell = {"instance_id": "1", "label": "a", "verdict": "keep", "annotator": "b"}
        pair = [Decision(fingerprint=data, **cell), Decision(fingerprint="0", **cell)]
        with pytest.raises(DatasetNotFound):
            workspace.decisions.add_many(pair)
        assert workspace.decisions.count(data) == 0

    def test_decisions_made_together_are_taken_back_together(
        self, decide, verdicts, workspace, data
    ):
        decide("keep", batch="b")
        decide("keep", label="dog", batch="b")
        decide("keep", label="cow", batch="b", annotator="bob")
        made = workspace.decisions.history(data)
        decide("reject", label="dog")  # stands on the second: not laid bare
        for _ in range(2):
            workspace.decisions.undo(made, "ann")
        assert verdicts() == [("1", "cow", "keep"), ("1", "dog", "reject")]

    def test_an_adjudicating_decision_goes_before_newer_ones_until_it_is_undone(
        self, decide, verdicts
    ):
        decide("keep")
        decide("reject", annotator="judge", adjudicates=True)
        decide("keep", annotator="bob")
        assert verdicts() == [("1", "cat", "reject")]
        decide("undo", annotator="judge")
        assert verdicts() == [("1", "cat", "keep")]


class TestCurrentDecisions:
    """What follows the store says what the whole history says, and reads only what is new."""

    @pytest.fixture
    def current(self, workspace, data):
        return CurrentDecisions(workspace.decisions, data)

    def test_it_follows_decisions_undos_and_adjudications(self, workspace, data, current):
        rng = np.random.default_rng(0)
        for _ in range(30):
            made = [
                Decision(
                    fingerprint=data,
                    instance_id=str(rng.integers(4)),
                    label="cat",
                    verdict=str(rng.choice(["keep", "reject", "unsure", "undo"])),
                    annotator=str(rng.choice(["ann", "bob", "cy"])),
                    adjudicates=bool(rng.random() < 0.2),
                )
                for _ in range(rng.integers(1, 4))
            ]
            workspace.decisions.add_many(made)
            now = current.refresh()
            history = workspace.decisions.history(data)
            assert now.last == history[-1]
            assert now.latest == holding(history)
            people = workspace.decisions.by_annotator(data)
            assert {who: sorted(made) for who, made in now.by_annotator.items()} == {
                who: sorted((one.instance_id, one.label) for one in made)
                for who, made in people.items()
            }
            counts = Counter(one.annotator for one in now.latest.values())
            assert now.n_by_annotator == dict(counts)

    def test_only_new_rows_are_read(self, workspace, data, current):
        answer(workspace, data, "ann", [str(i) for i in range(50)])
        before = current.refresh()
        assert current.refresh() is before
        answer(workspace, data, "bob", ["7"])
        after = current.refresh()
        changed = {cell for cell, one in after.latest.items() if before.latest.get(cell) is not one}
        assert changed == {("7", "label0")}  # all others are the very same objects
        assert before.latest[("7", "label0")].annotator == "ann"
        assert len(workspace.decisions.since(data, before.last.id)) == 2

    def test_a_database_that_was_put_back_is_read_anew(self, workspace, data, current):
        answer(workspace, data, "ann", ["1", "2"])
        current.refresh()
        with workspace.database.write() as connection:
            connection.execute(sa.delete(schema.decisions))
        assert current.refresh().latest == {}
        answer(workspace, data, "bob", ["3"])
        assert list(current.refresh().latest) == [("3", "label0")]

    def test_answers_and_their_lanes_are_one_transaction(self, folder, workspace, data):
        workspace.lanes.claim(data, "ann", ["1"], 1)
        killed_at("decisions.inserted", "answer_one", folder, "ann", "1")
        assert workspace.decisions.count(data) == 0
        answer(workspace, data, "ann", ["1"])
        workspace.lanes.release(data, "ann")
        assert workspace.lanes.claim(data, "bob", ["1"], 1) == []


def holding(history: list[Decision]) -> dict[tuple[str, str], Decision]:
    """Return what holds, worked out from the rules one cell and one person at a time."""
    found = {}
    for cell in {(one.instance_id, one.label) for one in history}:
        tops = []
        for who in {one.annotator for one in history}:
            stack: list[Decision] = []
            for one in history:
                if (one.instance_id, one.label, one.annotator) == (*cell, who):
                    stack = stack[:-1] if one.verdict == "undo" else [*stack, one]
            tops += stack[-1:]
        judged = [one for one in tops if one.adjudicates] or tops
        if judged:
            found[cell] = max(judged, key=lambda one: one.id)
    return found


def replaced_uid(decision: Decision, uid: str) -> Decision:
    return decision.model_copy(update={"uid": uid})
