"""A client's connection, as far as its listener knows it."""

from __future__ import annotations

from typing import Protocol


class Connection(Protocol):
    @property
    def idle_since(self) -> float | None:
        """`loop.time()` when its last request was answered, or when it began; None while a request is under way."""

    def look(self, now: float) -> None:
        """Close it, or ask its client, if something has taken longer than the limits allow.

        Called about once a second with `loop.time()`, so that no connection needs timers of its own.
        """

    def shutdown(self) -> None:
        """Take no further requests, and end with the last reply; an idle connection ends at once."""

    def abort(self) -> None:
        """End it now, with all that is under way."""
