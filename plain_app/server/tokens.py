"""Tokens by which the review desk proves whose answers it sends.

The page, which knows the annotator, signs what the desk may do; the routes, which see only a
request, check the signature. A token is good for an hour or so and in one browser only, known by
its cookie; every rerun of the page gives the desk a fresh one. Answers that waited longer in the
browser are not lost: an old token is renewed for the person who holds a fresh one. The key is a
file of the workspace, so a token outlives a restart.
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from pathlib import Path
from time import time
from typing import NamedTuple

from core.errors import PlainError
from core.store.files import write_once
from plain_app.services.workspace import workspace

KEY_FILE = "secret.key"
LIFE = 3600
"""Seconds that a token is good for, at least."""

STEP = 600  # seconds in which a person gets the same token: the desk is not drawn anew for it


class ExpiredTokenError(PlainError):
    """The token was good once, or is good in another browser: the page has a fresh one."""


class Claims(NamedTuple):
    """Who decides, on which run of which data."""

    fingerprint: str
    run_id: str
    annotator: str


def issue(claims: Claims, browser: str = "") -> str:
    """Return a token for these claims, to be used in the browser with this cookie."""
    expires = (int(time()) // STEP + 1) * STEP + LIFE
    sealed = json.dumps([*claims, _digest(browser), expires])
    body = base64.urlsafe_b64encode(sealed.encode()).decode()
    return f"{body}.{_signature(body)}"


def check(token: str, browser: str = "") -> Claims:
    """Return what a token claims; refuse one of another workspace, of another browser or too old.

    Raises
    ------
    ExpiredTokenError
        Where a fresh token of the same person would be taken.
    """
    claims, digest, expires = _open(token)
    if expires < time():
        raise ExpiredTokenError("This page was left alone too long.", "", "Reload the page.")
    if not hmac.compare_digest(digest, _digest(browser)):
        raise ExpiredTokenError("This page belongs to another browser.", "", "Reload the page.")
    return claims


def renew(fresh: Claims, token: str, browser: str = "") -> str:
    """Return a fresh token for the claims of an old one, if it is the same person's."""
    claims, _, _ = _open(token)
    if claims.annotator != fresh.annotator:
        found = f"{claims.annotator} gave them; {fresh.annotator} is here."
        hint = "They are kept in this browser until their author comes back."
        raise PlainError("These answers are another person's.", found, hint)
    return issue(claims, browser)


def _open(token: str) -> tuple[Claims, str, float]:
    """Return the claims of a token of this workspace, its browser, and when it expires."""
    body, _, signature = token.partition(".")
    if not hmac.compare_digest(_signature(body).encode(), signature.encode("utf-8", "replace")):
        raise PlainError("These answers belong to another workspace.", "", "Reload the page.")
    try:
        parts = json.loads(base64.urlsafe_b64decode(body))
        digest, expires = parts[3:] or ("", 0)  # none in those made before tokens expired
        return Claims(*parts[:3]), str(digest), float(expires)
    except (binascii.Error, ValueError, TypeError) as error:
        raise PlainError("This token is damaged.", "", "Reload the page.") from error


def _digest(browser: str) -> str:
    return hashlib.sha256(browser.encode("utf-8", "replace")).hexdigest()[:32]


def _signature(body: str) -> str:
    return hmac.new(
        _key(workspace().folder), body.encode("utf-8", "replace"), hashlib.sha256
    ).hexdigest()


def _key(folder: Path) -> bytes:
    path = folder / KEY_FILE
    if not path.exists():
        write_once(path, secrets.token_bytes(32))
    return path.read_bytes()
