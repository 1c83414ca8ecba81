"""A client's connection, as far as its listener knows it."""

from __future__ import annotations

from typing import Protocol

ON_ITS_WAY = 0.5
"""Seconds in which a client that has connected, or has read a reply, may have sent a request that is not here yet."""


def may_be_asked(idle_since: float, now: float) -> bool:
    """Whether a request of a client that has been idle since then may be on its way (`loop.time()` both)."""
    return now - idle_since < ON_ITS_WAY


class Connection(Protocol):
    @property
    def idle_since(self) -> float | None:
        """`loop.time()` when its last request was answered, or when it began; None while a request is under way."""

    def look(self, now: float) -> None:
        """Close it, or ask its client, if something has taken longer than the limits allow.

        Called about once a second with `loop.time()`, so that no connection needs timers of its own.
        """

    def shutdown(self) -> None:
        """Take no further requests, and end with the last reply; an idle connection ends at once.

        To one that has been idle for a moment only, a request may be on its way (`may_be_asked`): it is answered, and
        is the last. Called again and again until the connection is gone.
        """

    def abort(self) -> None:
        """End it now, with all that is under way."""
