"""Propagated values brought to [0, 1]."""

from typing import Any

import numpy as np


def balance(Z: Any, Y: Any, how: str) -> Any:
    """Bring propagated values to [0, 1] per label, as `PlainConfig.balance` says.

    "minmax" is the paper's column-wise rescaling. Two columns have no order to stretch and are
    only clipped, where the release would give zeros or amplified rounding: constant ones, and
    (set to 0) those of a label that nobody offers.
    """
    if how == "none":
        return Z
    xp: Any = np
    if not isinstance(Z, np.ndarray):
        import torch as xp
    if how == "mask":
        out = xp.clip(Z, 0, 1)
        out *= Y
        return out
    low, high = xp.amin(Z, 0), xp.amax(Z, 0)
    flat = high - low < 1e-6
    out = Z - xp.where(flat, xp.zeros_like(low), low)
    out /= xp.where(flat, xp.ones_like(low), high - low)
    out = xp.clip(out, 0, 1, out=out)
    out *= xp.amax(Y, 0) > 0
    return out
