"""Texts as features: their words (TF-IDF, made dense), or what they mean (a sentence encoder)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

MAX_TOPICS = 100
"""Dimensions of words beside meaning: 300 and 600 are no better on GoEmotions (AUC .921 with 100,
.917 and .919, means over two kinds of made noise and two seeds), and cost more."""


def word_topics(texts: Sequence[str], column: str) -> npt.NDArray[np.float32]:
    """Return texts by their words in few dimensions (latent semantic analysis), of length 1."""
    from sklearn.decomposition import TruncatedSVD

    from core.formats.shared.text_features import word_features

    words, _ = word_features(texts, column)
    n_topics = min(MAX_TOPICS, min(words.shape) - 1)
    if n_topics < 1:
        return np.asarray(words.toarray(), np.float32)
    with np.errstate(invalid="ignore"):  # where all texts are alike, shares of nothing
        topics = TruncatedSVD(n_topics, random_state=0).fit_transform(words)
    lengths = np.linalg.norm(topics, axis=1, keepdims=True)
    return np.asarray(topics / np.where(lengths > 0, lengths, 1), np.float32)


class SentenceEncoder:
    """A folder that sentence-transformers loads; only safetensors are read, no code in it runs."""

    kind = "text"
    batch = 128  # sorted by length inside, and then taken 32 at a time

    def __init__(self, folder: Path, name: str) -> None:
        from sentence_transformers import SentenceTransformer

        self.name = name
        self._model = SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
        self.n_features = int(self._model.get_embedding_dimension() or 0)

    def encode(self, items: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one row of features per text."""
        from core.engine.network import one_thread_if_small

        with one_thread_if_small(0):
            found = self._model.encode(
                list(items), batch_size=32, show_progress_bar=False, convert_to_numpy=True
            )
        return np.asarray(found, np.float32)
