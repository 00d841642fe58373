"""Read, encode and store a data set in a process of its own, for a server that stays light.

`python -m core.encoders.child` takes one JSON object on its input and prints one per line: progress
(column, done, total), then a fingerprint, or an error. `store_encoded` is the other end of it. When
it is ended, the next one goes on where it stopped.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.errors import DatasetError, PlainError

Progress = Callable[[str, int, int], None]


def store_encoded(
    path: Path,
    name: str,
    mapping: str,
    choices: Mapping[str, str],
    data: Path | None,
    workspace: Path,
    progress: Progress,
) -> str:
    """Have a child read, encode and store a file; return the fingerprint.

    Parameters
    ----------
    mapping : the stated roles of columns as JSON; empty for none
    data : the file or zip file that names of pictures are beside; none for an upload alone

    Raises
    ------
    PlainError
        What the child refused, or that it was ended.
    """
    order = {
        "path": str(path),
        "name": name,
        "mapping": mapping,
        "choices": dict(choices),
        "data": None if data is None else str(data),
        "workspace": str(workspace),
    }
    command = [sys.executable, "-m", "core.encoders.child"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, stderr=subprocess.DEVNULL, **pipes) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps(order))
            child.stdin.close()
            for line in child.stdout:
                message = json.loads(line)
                if "error" in message:
                    raise PlainError(*message["error"])
                if "fingerprint" in message:
                    return str(message["fingerprint"])
                progress(message["column"], message["done"], message["total"])
        finally:
            child.kill()  # whoever asked may be gone: what was encoded is kept
    hint = "Try again: it goes on where it stopped. Close other programs if memory is short."
    raise PlainError("Encoding ended before it was done.", hint=hint)


def _run(order: Mapping[str, Any]) -> str:
    from core.encoders import encode, plan
    from core.encoders.thumbnails import Thumbnails
    from core.formats import ColumnMapping, read
    from core.store import Workspace

    def show(column: str, done: int, total: int) -> None:
        _say(column=column, done=done, total=total)

    space = Workspace(order["workspace"])
    stated = order["mapping"]
    mapping = ColumnMapping.model_validate_json(stated) if stated else None
    result = read(order["path"], mapping, name=order["name"])
    data = None if order["data"] is None else Path(order["data"])
    made = encode(
        result, plan(result, order["choices"]), data=data, workspace=space.folder, progress=show
    )
    fingerprint = space.add_dataset(made.result.dataset, order["name"], made.result.mapping)
    Thumbnails(space.folder).remember(fingerprint, made.keys, data)
    space.share(f"datasets/{fingerprint}")
    space.close()
    return fingerprint


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    try:
        _say(fingerprint=_run(json.load(sys.stdin)))
    except DatasetError as error:
        _say(error=(error.title, "\n".join(map(str, error.problems[:20])), error.hint))
    except PlainError as error:
        _say(error=(error.title, error.detail, error.hint))
