"""Lanes in which callbacks take turns: one of each asker and host."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

AT_ONCE, AT_ONCE_OF_ASKER, AT_ONCE_OF_LANE = 32, 16, 4
"""Callbacks that are sent at a time, those of them of one asker, and those of it to one host: a host that hangs holds
up itself, and an asker whose hosts hang leaves places to others."""


class Waiting:
    """A callback in memory: its job, who asks for it, and the lane in which it takes turns."""

    __slots__ = ("asker", "faults", "id", "lane", "number", "owner")

    def __init__(self, id: str, owner: str, asker: str, url: str) -> None:
        self.id, self.owner, self.asker = id, owner, asker
        self.faults = 0
        """Tries that ended in an unforeseen way."""
        self.lane, self.number = f"{asker} {host_of(url)}", 0


class BusyLanes:
    """The callbacks that are being sent; it contains the lanes of which none may be sent beside them."""

    def __init__(self) -> None:
        self._lanes: Counter[str] = Counter()
        self._askers: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self._lanes.total()

    def __contains__(self, lane: object) -> bool:
        return self._lanes[str(lane)] >= AT_ONCE_OF_LANE

    def is_full(self, asker: str) -> bool:
        """Whether none of the asker's may be sent beside them."""
        return self._askers[asker] >= AT_ONCE_OF_ASKER

    def add(self, one: Waiting) -> None:
        self._lanes[one.lane] += 1
        self._askers[one.asker] += 1

    def remove(self, one: Waiting) -> None:
        self._lanes -= Counter([one.lane])
        self._askers -= Counter([one.asker])


def host_of(url: str) -> str:
    """The host of a URL, by one name however it is written. Raises ValueError."""
    return (urlsplit(url).hostname or "").removesuffix(".")
