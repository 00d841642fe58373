"""The variables of a `.mat` file, decoded by a child process that a damaged file may crash."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy.typing as npt

from core.formats.shared.arrays import load_arrays
from core.formats.shared.findings import refuse
from core.formats.shared.limits import size_limit
from core.formats.shared.sparse_rows import checked_csr

DAMAGED = "The file is damaged or cut off: save it again from MATLAB."
SECONDS = 6.0  # of the processor, for a small file; decoding takes well under one
PATIENCE = 6  # times that on the clock, for a busy machine
SECONDS_PER_BYTE = 1 / 4e6

Variables = dict[str, Any]


def decoded(path: Path, wanted: str) -> Variables:
    """Return the variables of a file that are called so, or all where none is."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "variables.npz"
        _decode(path, target, wanted)
        found = _assembled(load_arrays(target, lambda name: True))
        if len(found) < 2:  # no name is known: look at all
            _decode(path, target, ".*")
            found = _assembled(load_arrays(target, lambda name: True))
        return found


def _decode(path: Path, target: Path, wanted: str) -> None:
    """Run the decoder as a child, which a damaged file may crash or stall without harm."""
    script = Path(__file__).with_name("decoder.py")
    limit = str(size_limit())
    command = [sys.executable, "-I", str(script), str(path.resolve()), str(target), limit, wanted]
    seconds = SECONDS + path.stat().st_size * SECONDS_PER_BYTE
    try:
        child = subprocess.run(
            command,
            capture_output=True,
            timeout=PATIENCE * seconds,
            env=_environment(seconds),
            check=False,
        )
    except subprocess.TimeoutExpired:
        refuse("decoding the .mat file takes too long", DAMAGED, value=f"{seconds:.0f} s")
    reason = child.stderr.decode("utf-8", "replace").strip()
    if child.returncode == 3:
        refuse(f"the .mat file cannot be read: {reason[-300:]}", DAMAGED)
    if child.returncode == 1:
        raise RuntimeError(f"the decoder of .mat files failed:\n{reason}")
    if child.returncode != 0:
        refuse("the .mat file breaks its decoder", DAMAGED, value=f"exit {child.returncode}")


def _environment(seconds: float) -> dict[str, str]:
    """One thread (memory is limited), no HDF5 plug-ins (they are programs), limited time."""
    limits = {"OPENBLAS_NUM_THREADS": "1", "PLAIN_DECODER_SECONDS": str(seconds)}
    return {**os.environ, **limits, "HDF5_PLUGIN_PRELOAD": "::"}


def _assembled(arrays: dict[str, npt.NDArray[Any]]) -> Variables:
    variables: Variables = {name: array for name, array in arrays.items() if "." not in name}
    for name in [key.removesuffix(".indptr") for key in arrays if key.endswith(".indptr")]:
        parts = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr", "shape"))
        variables[name] = checked_csr(*parts, exact=True)
    return variables
