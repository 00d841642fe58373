"""Tokens by which the review desk proves whose answers it sends.

The page, which knows the annotator, signs what the desk may do; the routes, which see only a
request, check the signature. The key is a file of the workspace, so a token outlives a restart:
answers kept in a browser while the server was away are taken when it is back.
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path
from typing import NamedTuple

from core.errors import PlainError
from plain_app.services.workspace import workspace

KEY_FILE = "secret.key"


class Claims(NamedTuple):
    """Who decides, on which run of which data."""

    fingerprint: str
    run_id: str
    annotator: str


def issue(claims: Claims) -> str:
    """Return a token for these claims."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()
    return f"{body}.{_signature(body)}"


def check(token: str) -> Claims:
    """Return what a token of this workspace claims; refuse any other."""
    body, _, signature = token.partition(".")
    if not hmac.compare_digest(_signature(body).encode(), signature.encode("utf-8", "replace")):
        raise PlainError("These answers belong to another workspace.", "", "Reload the page.")
    try:
        return Claims(*json.loads(base64.urlsafe_b64decode(body)))
    except (binascii.Error, ValueError, TypeError) as error:
        raise PlainError("This token is damaged.", "", "Reload the page.") from error


def _signature(body: str) -> str:
    return hmac.new(
        _key(workspace().folder), body.encode("utf-8", "replace"), hashlib.sha256
    ).hexdigest()


def _key(folder: Path) -> bytes:
    path = folder / KEY_FILE
    if not path.exists():
        temporary = folder / f".{KEY_FILE}.{secrets.token_hex(4)}.tmp"
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(32))
        try:
            os.link(temporary, path)  # never replaces the key of a server that was faster
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    return path.read_bytes()
