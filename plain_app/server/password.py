"""The password of a shared server: its file, and the cookies it signs.

The file holds a salted scrypt hash, never the password. Cookies are signed with a key made from
that hash: they outlive a restart and end with the password.
"""

import base64
import binascii
import hashlib
import hmac
import logging
import os
import secrets
from pathlib import Path
from time import time

from core.errors import PlainError, StoreError
from core.paths import require_replaceable
from core.store.files import replacing

MIN_LENGTH = 8
_COST = {"n": 2**14, "r": 8, "p": 1, "maxmem": 2**26, "dklen": 32}
_KIND = "scrypt-16384-8-1"
_log = logging.getLogger(__name__)


class Password:
    """A password as its file knows it, and the cookies it signs."""

    def __init__(self, salt: bytes, digest: bytes) -> None:
        self._salt, self._digest = salt, digest
        self._key = hashlib.sha256(b"plain login cookie" + digest).digest()

    @classmethod
    def read(cls, path: Path) -> "Password":
        """Read a password file; refuse one that others may read."""
        try:
            text = path.read_text("ascii").strip()
            kind, salt, digest = text.split("$")
            known = cls(base64.b64decode(salt, validate=True), base64.b64decode(digest))
        except OSError as error:
            hint = "Make it with: plain password FILE"
            raise PlainError("The password file cannot be read.", str(error), hint) from error
        except (ValueError, binascii.Error) as error:
            hint = "Remove it, and make it anew with: plain password FILE"
            raise PlainError("This is not a password file.", str(path), hint) from error
        if kind != _KIND:
            raise PlainError("This password file is of another kind.", kind[:40])
        if os.name == "posix" and path.stat().st_mode & 0o077:
            hint = f"Allow only yourself: chmod 600 {path}"
            raise PlainError("Others can read the password file.", str(path), hint)
        return known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and self._digest == other._digest

    __hash__ = None  # type: ignore[assignment]

    def fits(self, given: str) -> bool:
        """Whether this is the password; takes the same time for every wrong one."""
        return hmac.compare_digest(_hash(given, self._salt), self._digest)

    def cookie(self, name: str, seconds: float) -> str:
        """Return the signed value of a cookie that is good for so long."""
        body = f"{int(time() + seconds)}.{secrets.token_hex(8)}"
        return f"{body}.{self._sign(name, body)}"

    def seconds_left(self, name: str, value: str) -> float:
        """Return how long a cookie is still good; 0 for one that is not, or not of ours."""
        body, _, signature = value.rpartition(".")
        expected = self._sign(name, body).encode()
        if not hmac.compare_digest(expected, signature.encode("utf-8", "replace")):
            return 0.0
        return max(int(body.partition(".")[0]) - time(), 0.0)

    def _sign(self, name: str, body: str) -> str:
        signed = f"{name}={body}".encode("utf-8", "replace")
        return hmac.new(self._key, signed, hashlib.sha256).hexdigest()


class PasswordFile:
    """The password in a file, as it is now: a changed file takes effect at once."""

    def __init__(self, path: Path) -> None:
        self._path, self._password = path, Password.read(path)
        self._stamp = self._look()

    def current(self) -> Password:
        """Return the password; the last good one while the file cannot be used."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                changed = Password.read(self._path)
            except PlainError as error:
                _log.warning("The last password stays in force. %s", error)
            else:
                self._password = self._password if changed == self._password else changed
        return self._password

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode


def write_password(path: Path, password: str) -> None:
    """Write a password file that only its owner can read."""
    if len(password) < MIN_LENGTH:
        must = f"At least {MIN_LENGTH} characters; got {len(password)}."
        raise PlainError("The password is too short.", must, "Several words are a good password.")
    require_replaceable(path, _KIND)
    salt = secrets.token_bytes(16)
    parts = (base64.b64encode(one).decode() for one in (salt, _hash(password, salt)))
    try:
        with replacing(path) as file:  # a server may read it at any time
            file.write(("$".join((_KIND, *parts)) + "\n").encode())
    except StoreError as error:
        raise PlainError("The password file cannot be written.", error.detail) from error


def _hash(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "surrogatepass"), salt=salt, **_COST)
