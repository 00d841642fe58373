"""Features from text where a file has no others: TF-IDF, kept sparse."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from core.formats.findings import refuse

MAX_WORDS = 20_000


def word_features(texts: Sequence[str], column: str) -> tuple[sp.csr_array, list[str]]:
    """Return the TF-IDF features of these texts and the words they count."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import

    words = TfidfVectorizer(max_features=MAX_WORDS, sublinear_tf=True, dtype=np.float32)
    try:
        features = words.fit_transform(texts)
    except ValueError:  # no word in any of them
        refuse("a text column must hold words", "Add features, or another text.", column=column)
    return sp.csr_array(features), [str(word) for word in words.get_feature_names_out()]
