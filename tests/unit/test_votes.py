import numpy as np
import pandas as pd
import pytest
from vote_table import vote_table

from core.data.dataset import CandidateDataset
from core.data.votes import Votes
from core.errors import DatasetError
from core.formats import read, with_votes, write
from core.store import Workspace

IDS, LABELS = ("a", "b", "c"), ("cat", "dog")


def some_votes() -> Votes:
    """Anna answers everything, Bob the first instance and one cell of the second."""
    V = np.full((3, 2, 2), np.nan)
    V[:, :, 0] = [[1, 0], [0, 1], [0, 0]]
    V[0, :, 1], V[1, 0, 1] = [1, 1], 0
    return Votes.from_array(V, ("anna", "bob"))


def dataset(votes: object = None, candidates: object = None, **more: object) -> CandidateDataset:
    return CandidateDataset(np.eye(3), candidates, LABELS, IDS, votes=votes, **more)  # type: ignore


def test_an_answer_about_all_labels_is_kept_as_one_pair():
    votes = some_votes()
    assert votes.answered.tolist() == [[0, 0], [0, 1], [1, 0], [2, 0]]
    assert votes.no.tolist() == [[1, 0, 1]]
    assert votes.candidates.tolist() == [[1, 1], [0, 1], [0, 0]]
    assert votes.n_yes.tolist() == [[2, 1], [0, 1], [0, 0]]
    assert votes.n_asked.tolist() == [[2, 2], [2, 1], [1, 1]]
    assert votes.offered_by(0, 1) == (["bob"], ["anna"])
    assert votes.offered_by(1, 0) == ([], ["anna", "bob"])


def test_a_table_of_votes_says_the_same_again():
    votes = some_votes()
    again = Votes.from_table(vote_table(votes, IDS, LABELS), IDS, LABELS)
    for part in ("yes", "answered", "no"):
        assert np.array_equal(getattr(again, part), getattr(votes, part)), part
    whole = votes.rows(np.array([0, 2]))  # nobody is asked partly here
    rows = [("a", "cat", "anna", 1), ("a", "cat", "bob", 1), ("a", "dog", "bob", 1)]
    rows.append(("c", "", "anna", 0))  # was asked about it and offered nothing
    table = pd.DataFrame(rows, columns=["instance", "label", "source", "vote"])
    again = Votes.from_table(table, ("a", "c"), LABELS)
    assert again.answered.tolist() == whole.answered.tolist()
    assert not len(again.no)


def test_a_table_without_no_means_that_whoever_is_listed_answered_all_labels():
    table = pd.DataFrame({"instance": ["a", "b"], "label": ["cat", "dog"], "source": ["x", "y"]})
    votes = Votes.from_table(table, IDS, LABELS)
    assert votes.offered_by(0, 1) == ([], ["x"])
    assert not len(votes.no)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("instance", "z", "instance of the data"),
        ("label", "cow", "label of the data"),
        ("vote", "perhaps", "1 or 0"),
    ],
)
def test_a_table_that_names_what_is_not_there_is_refused(column, value, said):
    table = vote_table(some_votes(), IDS, LABELS).astype(str)
    table.loc[1, column] = value
    with pytest.raises(DatasetError, match=said):
        Votes.from_table(table, IDS, LABELS)


def test_a_source_that_says_yes_and_no_to_a_cell_is_refused():
    table = vote_table(some_votes(), IDS, LABELS)
    twice = pd.concat([table, table[table.vote == 1].assign(vote=0)])
    with pytest.raises(DatasetError, match="both yes and no"):
        Votes.from_table(twice, IDS, LABELS)


def test_candidates_are_the_cells_with_a_yes():
    votes = some_votes()
    assert dataset(votes).candidates.tolist() == votes.candidates.tolist()
    with pytest.raises(DatasetError, match="said yes to"):
        dataset(votes, np.ones((3, 2)))
    with pytest.raises(DatasetError, match="the data have"):
        dataset(votes.rows(np.array([0, 1])), votes.candidates)


def test_votes_are_part_of_the_fingerprint_and_their_absence_is_not():
    votes = some_votes()
    alone = dataset(None, votes.candidates).fingerprint
    assert dataset(votes).fingerprint != alone
    assert dataset(votes).fingerprint == dataset(some_votes()).fingerprint
    renamed = Votes(("anna", "ben"), votes.yes, votes.answered, votes.no, votes.shape)
    assert dataset(renamed).fingerprint != dataset(votes).fingerprint


def test_a_workspace_keeps_votes(tmp_path):
    workspace = Workspace(tmp_path)
    fingerprint = workspace.add_dataset(dataset(some_votes()), "votes")
    back = workspace.load_dataset(fingerprint, verify=True).votes
    assert back is not None
    assert back.sources == ("anna", "bob")
    assert back.offered_by(0, 1) == (["bob"], ["anna"])
    workspace.close()


def test_npz_keeps_votes(tmp_path):
    path = write(dataset(some_votes()), tmp_path / "data.npz")
    assert read(path).dataset.fingerprint == dataset(some_votes()).fingerprint


def test_a_table_beside_the_data_says_who_said_what(tmp_path):
    votes = some_votes()
    path = write(dataset(None, np.ones((3, 2))), tmp_path / "data.npz")
    vote_table(votes, IDS, LABELS).to_csv(tmp_path / "votes.csv", index=False)
    result = with_votes(read(path), tmp_path / "votes.csv")
    assert result.dataset.fingerprint == dataset(votes).fingerprint
    assert any("votes only" in problem.message for problem in result.problems)


def test_labels_that_become_one_are_offered_by_whoever_offered_any():
    merged = some_votes().relabelled(np.array([0, 0]), 1)
    assert merged.candidates.ravel().tolist() == [1, 1, 0]
    assert merged.offered_by(1, 0) == (["anna"], ["bob"])
