"""Finds stop strings in a text that comes in pieces."""

from __future__ import annotations

from typing import NamedTuple


class StopMatch(NamedTuple):
    stop: str
    start: int
    end: int


class StopFinder:
    """Finds the stop string that a text reaches first, as if it came character by character: the one that ends first,
    and among those that end together the longest. The result does not depend on the pieces."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = tuple(stop for stop in dict.fromkeys(stops) if stop)
        self._beginnings = {stop[:length] for stop in self._stops for length in range(1, len(stop))}
        self._longest = max(map(len, self._stops), default=1) - 1

    def __bool__(self) -> bool:
        """Whether there is anything to find."""
        return bool(self._stops)

    def __contains__(self, text: str) -> bool:
        return text in self._stops

    def find(self, text: str) -> StopMatch | None:
        places = ((text.find(stop), stop) for stop in self._stops)
        found = [StopMatch(stop, start, start + len(stop)) for start, stop in places if start >= 0]
        return min(found, key=lambda it: (it.end, it.start), default=None)

    def safe(self, text: str) -> int:
        """How many characters of a text without a stop string cannot become a part of one."""
        for length in range(min(self._longest, len(text)), 0, -1):
            if text[-length:] in self._beginnings:
                return len(text) - length
        return len(text)
