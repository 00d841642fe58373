"""Votes as the table that `Votes.from_table` reads, written out cell by cell."""

from collections.abc import Sequence

import pandas as pd

from core.data.votes import COLUMNS, Votes


def vote_table(votes: Votes, ids: Sequence[str], labels: Sequence[str]) -> pd.DataFrame:
    """Return every yes and every no: whoever answered an instance said something to all labels."""
    whole = ((i, j, k) for i, k in votes.answered.tolist() for j in range(len(labels)))
    said = dict.fromkeys([*whole, *map(tuple, votes.no.tolist())], 0)
    said |= dict.fromkeys(map(tuple, votes.yes.tolist()), 1)
    named = ((ids[i], labels[j], votes.sources[k], vote) for (i, j, k), vote in said.items())
    return pd.DataFrame(sorted(named), columns=[*COLUMNS])
