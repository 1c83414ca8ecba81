"""How many descriptors of segments this process may hold."""

from socket import socket
from typing import NamedTuple

FEW = 4


class SegmentLimits(NamedTuple):
    """Limits of one worker: `size` is in bytes, of all its segments; `number` is how many there may be."""

    size: int
    number: int


READS = SegmentLimits(0, 0)
"""A worker with these limits reads the segments of others, and sends its own values in frames."""


class SegmentSocket(NamedTuple):
    """The server's end of a socket on which descriptors of shared memory travel; `limits` are what is granted."""

    end: socket
    limits: SegmentLimits


class SegmentAllowance:
    """Taken when a stage's worker starts and put back at its end: what it is granted it may use without asking."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, wanted: SegmentLimits) -> SegmentLimits:
        """Half of what is left at most, while there are more than a few, so that the next stage has some, too."""
        granted = min(wanted.number, max(self.left // 2, min(self.left, FEW))) if wanted.size else 0
        self.left -= granted
        return SegmentLimits(wanted.size, granted) if granted else READS

    def put_back(self, granted: SegmentLimits) -> None:
        self.left += granted.number
