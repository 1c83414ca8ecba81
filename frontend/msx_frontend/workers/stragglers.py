"""Finds the rank that the others wait for in a collective: the one that has taken part in fewer of them."""

import re
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msx_frontend.workers.lockstep import named

ONE_SIDED = ("send", "broadcast")
"""Collectives in which one rank may wait as long as another computes, as a pipeline stage does for the one before."""


class Wait(NamedTuple):
    collective: str
    waiting: list[int]
    missing: list[int]


class Stragglers:
    """How many collectives have begun on each rank, as the ranks report with every pong."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._counts: dict[int, Mapping[str, int]] = {}
        self._changed = time.monotonic()

    def counted(self, rank: int, counts: Mapping[str, int], now: float) -> None:
        if counts != self._counts.get(rank):
            self._counts[rank], self._changed = counts, now

    def overdue(self, now: float) -> str:
        """Names the rank that the others have waited for during `limit` seconds without any progress; else ""."""
        if now - self._changed <= self._limit:
            return ""
        waits = (wait for wait in self._waits() if not wait.collective.startswith(ONE_SIDED))
        return next((self._sentence(wait) for wait in waits), "")

    def words(self) -> str:
        """`rank 0 waits in all_reduce[0,1] for rank 1`, if a rank waits; else ""."""
        for name, waiting, missing in self._waits():
            verb = "waits" if len(waiting) == 1 else "wait"
            return f"{named(waiting).lower()} {verb} in {name} for {named(missing).lower()}"
        return ""

    def _sentence(self, wait: Wait) -> str:
        limit, others = f"rankSkewTimeout ({self._limit:g} s)", named(wait.waiting).lower()
        return f"{named(wait.missing)} did not come to {wait.collective} within {limit} after {others}."

    def _waits(self) -> Iterator[Wait]:
        """The ranks in brackets (`all_reduce[0,1]`) take part in each of these collectives together."""
        for name in sorted({name for counts in self._counts.values() for name in counts}):
            ranks = [int(number) for number in re.findall(r"\d+", name.partition("[")[2])]
            counted = {rank: self._counts.get(rank, {}).get(name, 0) for rank in ranks}
            most = max(counted.values())
            if missing := [rank for rank in ranks if counted[rank] < most]:
                waiting = [rank for rank in ranks if counted[rank] == most]
                yield Wait(collective=name, waiting=waiting, missing=missing)
