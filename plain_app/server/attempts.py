"""How often a password may be guessed: counts of the last minute, kept before anything is hashed.

An address may be wrong three times a minute and all strangers together five times, so that many
addresses guess no faster than one. Whoever floods the gate could therefore keep newcomers out while
the flood lasts; a browser that was let in before is not among the strangers and has a count of its
own (the "device cookie" of OWASP), so that nobody who works here is ever kept out by others.
"""

from collections import deque
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic

SECONDS = 60.0
PER_ADDRESS, STRANGERS, PER_BROWSER = 3, 5, 5  # wrong passwords in so many seconds


def groups(client: str, browser: str) -> dict[str, int]:
    """Return what a try counts for, each with its limit; `browser` is one that is known here."""
    if browser:
        return {f"browser {browser}": PER_BROWSER}
    return {f"address {_network(client)}": PER_ADDRESS, "strangers": STRANGERS}


class Attempts:
    """The tries of the last minute; those that are older are forgotten."""

    def __init__(self) -> None:
        self._tries: dict[str, deque[float]] = {}

    def wait(self, limits: dict[str, int]) -> float:
        """Return the seconds until one more may be tried; 0 for now."""
        now = monotonic()
        for group, tries in list(self._tries.items()):
            while tries and tries[0] <= now - SECONDS:
                tries.popleft()
            if not tries:
                del self._tries[group]
        full = [
            tries[-limit] + SECONDS - now
            for group, limit in limits.items()
            if len(tries := self._tries.get(group, deque())) >= limit
        ]
        return max(full, default=0.0)

    def count(self, limits: dict[str, int]) -> None:
        """Count a try."""
        for group in limits:
            self._tries.setdefault(group, deque()).append(monotonic())

    def uncount(self, limits: dict[str, int]) -> None:
        """Take the last try back: it was right."""
        for group in limits:
            if tries := self._tries.get(group):
                tries.pop()


def _network(client: str) -> str:
    """Return the address that counts; of IPv6, where one household has 2^64, the network."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or ip_network((address, 64), strict=False))
    return str(address)
