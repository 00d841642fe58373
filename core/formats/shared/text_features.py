"""Features from text where a file has no others: TF-IDF, kept sparse."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp

from core.formats.shared.findings import refuse
from core.formats.shared.limits import check_size

MAX_WORDS = 20_000
MAX_COUNTED = 1_000_000  # words remembered while many texts are counted
MANY = 2**25  # characters; fewer have no more words than fit
COST = 8  # bytes that a character takes on its way to features


def word_features(texts: Sequence[str], column: str) -> tuple[sp.csr_array, list[str]]:
    """Return the TF-IDF features of these texts and the words they count."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import

    n_characters = sum(map(len, texts))
    check_size(COST * n_characters, "text that becomes features")
    options = {"sublinear_tf": True, "dtype": np.float32}
    words = TfidfVectorizer(max_features=MAX_WORDS, **options)
    try:
        if n_characters > MANY:
            words = TfidfVectorizer(vocabulary=_frequent(texts, words.build_analyzer()), **options)
        features = words.fit_transform(texts)
    except ValueError:  # no word in any of them
        refuse("a text column must hold words", "Add features, or another text.", column=column)
    return sp.csr_array(features), [str(word) for word in words.get_feature_names_out()]


def _frequent(texts: Sequence[str], words_of: Callable[[str], list[str]]) -> list[str]:
    """Return the most frequent words; the rarest are forgotten when there are too many."""
    counts: Counter[str] = Counter()
    rare = 1
    for text in texts:
        counts.update(words_of(text))
        while len(counts) > MAX_COUNTED:
            counts = Counter({word: n for word, n in counts.items() if n > rare})
            rare += 1
    return sorted(word for word, _ in counts.most_common(MAX_WORDS))
