"""Picture encoders that a person brings: an `.onnx` file, or a folder that transformers loads.

Both are data to us: an ONNX graph runs in onnxruntime with its built-in operators only, of a folder
only safetensors are read, and neither may bring code or fetch anything.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from core.encoders.efficientnet import centred_square
from core.errors import PlainError

SIDE = 224  # where a model states no size of its own
# What nearly all published picture models expect: ImageNet's colours, from 0 to 1.
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)

Values = npt.NDArray[np.float32]


class OnnxEncoder:
    """Any ONNX model with one input of pictures; its first output is the features."""

    kind = "picture"

    def __init__(self, path: Path, name: str) -> None:
        import onnxruntime

        try:
            session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        except Exception as error:  # one call; its types, a dozen, have no public common base
            raise PlainError("This ONNX file cannot be used.", str(error)[:300]) from None
        inputs = session.get_inputs()
        shape = inputs[0].shape if len(inputs) == 1 else []
        if len(shape) != 4 or 3 not in (shape[1], shape[3]) or "float" not in inputs[0].type:
            found = "; ".join(f"{one.name} {one.type} {one.shape}" for one in inputs)
            hint = "Export a model with one input of float pictures, (batch, 3, height, width)."
            raise PlainError("An .onnx file must encode pictures.", f"Its inputs: {found}.", hint)
        self.name, self._session, self._input = name, session, inputs[0].name
        self._channels_first = shape[1] == 3
        sides = [one for one in (shape[2], shape[3 if self._channels_first else 1]) if _fixed(one)]
        self._side = int(sides[0]) if sides else SIDE
        self.batch = int(shape[0]) if _fixed(shape[0]) else 32
        grey = Image.new("RGB", (self._side, self._side), "grey")
        self.n_features = self.encode([grey]).shape[1]

    def encode(self, items: Sequence[Image.Image]) -> Values:
        """Return one row of features per picture; maps and tokens are averaged."""
        squares = [centred_square(one, self._side) for one in items]
        squares += [squares[-1]] * (self.batch - len(items) if self.batch != 32 else 0)
        pixels = (np.stack(squares) / 255 - MEAN) / DEVIATION
        pixels = pixels.transpose(0, 3, 1, 2) if self._channels_first else pixels
        found = self._session.run(None, {self._input: np.ascontiguousarray(pixels)})[0]
        return _averaged(np.asarray(found, np.float32), self._channels_first)[: len(items)]


class FolderEncoder:
    """A folder of a picture model as transformers saves it."""

    kind = "picture"
    batch = 32

    def __init__(self, folder: Path, name: str) -> None:
        from transformers import AutoImageProcessor, AutoModel

        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            load: Any = AutoImageProcessor.from_pretrained
            self._prepare = load(str(folder), backend="pil", **options)
            model = AutoModel.from_pretrained(str(folder), use_safetensors=True, **options)
        except (OSError, ValueError, ImportError) as error:
            hint = "It needs config.json, preprocessor_config.json and model.safetensors."
            raise PlainError("This model folder cannot be used.", str(error)[:300], hint) from None
        self.name, self._model = name, model.eval()
        self.n_features = self.encode([Image.new("RGB", (SIDE, SIDE), "grey")]).shape[1]

    def encode(self, items: Sequence[Image.Image]) -> Values:
        """Return one row of features per picture: the pooled output, or the mean of the tokens."""
        import torch

        with torch.inference_mode():
            found = self._model(**self._prepare(list(items), return_tensors="pt"))
        pooled = getattr(found, "pooler_output", None)
        chosen = found.last_hidden_state if pooled is None else pooled
        return _averaged(chosen.float().numpy(), channels_first=True)


def _averaged(found: Values, channels_first: bool) -> Values:
    if found.ndim == 4:
        found = found.mean(axis=(2, 3) if channels_first else (1, 2))
    elif found.ndim == 3:
        found = found.mean(axis=1)
    return np.ascontiguousarray(found.reshape(len(found), -1))


def _fixed(size: Any) -> bool:
    return isinstance(size, int) and size > 0
