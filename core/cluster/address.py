"""Which schedulers may be used: those that prove who they are, and those of this machine."""

from importlib.util import find_spec
from ipaddress import ip_address
from urllib.parse import urlsplit

from core.errors import ConfigError

_RULE = (
    "must be tls://HOST:PORT, or tcp://HOST:PORT of this machine (127.0.0.1, localhost, [::1]): "
    "members of a cluster unpickle what they are sent, so whoever can reach a plain address can "
    "run any program on all of them"
)


def checked_address(text: str) -> str:
    """Return a scheduler's address with its protocol.

    Raises
    ------
    ValueError
        It is not one that may be used; the message says why.
    """
    address = text.strip()
    address = address if "://" in address else f"tcp://{address}"
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(_RULE) from None
    if not host or not port or parts.path or parts.query or parts.username:
        raise ValueError(_RULE)
    if parts.scheme == "tls" or (parts.scheme == "tcp" and _is_here(host)):
        return address
    raise ValueError(_RULE)


def is_installed() -> bool:
    """Whether the extra `cluster` is there."""
    return find_spec("distributed") is not None


def require_installed() -> None:
    """Refuse a cluster where the extra is missing."""
    if not is_installed():
        hint = "Install it: pip install 'plain-studio[cluster]'"
        raise ConfigError("A cluster needs dask.distributed.", "It is not installed here.", hint)


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
