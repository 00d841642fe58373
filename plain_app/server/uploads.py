"""Uploads what was left over, in a thread of the server, where there is object storage."""

import os
import sys
import threading
from pathlib import Path
from time import sleep

from core.errors import StoreError
from core.store import Workspace
from core.store.object_storage import URL_VARIABLE

EVERY_SECONDS = 60.0


def start_uploads(folder: Path) -> None:
    """Begin to upload what of a workspace is not in the storage; does nothing without storage."""
    if os.environ.get(URL_VARIABLE):
        thread = threading.Thread(target=_upload_for_ever, args=(Workspace(folder),), daemon=True)
        thread.start()


def _upload_for_ever(space: Workspace) -> None:
    is_verified, told = False, ""
    while True:
        try:
            space.share_all(verify=not is_verified)
            is_verified, told = True, ""
        except (StoreError, OSError) as error:  # also of a run that was removed meanwhile
            if str(error) != told:  # once, not every minute
                print(error, file=sys.stderr, flush=True)
            told = str(error)
        sleep(EVERY_SECONDS)
