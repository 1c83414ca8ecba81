"""How many descriptors of segments this process may hold."""

from __future__ import annotations

from socket import socket
from typing import NamedTuple


class SegmentLimits(NamedTuple):
    """Of one worker: `size` is in bytes, of all its segments; `number` is how many there may be."""

    size: int
    number: int


class SegmentSocket(NamedTuple):
    """The server's end of a socket on which descriptors of shared memory travel; `limits` are what is granted."""

    end: socket
    limits: SegmentLimits


class SegmentAllowance:
    """Taken when a stage's worker starts and put back at its end: what it is granted it may use without asking."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, wanted: SegmentLimits) -> SegmentLimits:
        """As many as there are left, perhaps none."""
        granted = min(wanted.number, self.left) if wanted.size else 0
        self.left -= granted
        return SegmentLimits(wanted.size if granted else 0, granted)

    def put_back(self, granted: SegmentLimits) -> None:
        self.left += granted.number
