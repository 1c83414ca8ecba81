"""How long a client takes to read replies."""

from __future__ import annotations

from msx_net.connections.connection import forgiven


class WriteTimer:
    """Seconds in which the client has taken nothing of what waits for it. It knows only the times at which it looks."""

    def __init__(self) -> None:
        self._unsent, self._since = 0, 0.0

    def forgive(self, seconds: float, now: float) -> None:
        self._since = forgiven(self._since, seconds, now)

    def look(self, now: float, unsent: int) -> float:
        """`unsent`: bytes that the transport holds. Nothing is written between two looks."""
        if not unsent or not self._unsent or unsent < self._unsent:
            self._since = now
        self._unsent = unsent
        return now - self._since
