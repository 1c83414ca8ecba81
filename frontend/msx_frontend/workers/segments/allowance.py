"""How many descriptors of segments this process may hold."""

import itertools
import time
from socket import socket
from typing import NamedTuple

FEW = 4


class SegmentLimits(NamedTuple):
    """Limits of one worker: `size` is in bytes, of all its segments; `number` is how many there may be."""

    size: int
    number: int


READS = SegmentLimits(0, 0)
"""A worker with these limits reads the segments of others, and sends its own values in frames."""


_owners = itertools.count(int(time.monotonic() * 1000) % (1 << 31))
"""Numbers of workers as owners of segments, of 32 bits. Those of the frontends before this one are smaller: what a
worker has kept of them is no segment of this one's."""


def next_owner() -> int:
    return next(_owners)


class SegmentSocket(NamedTuple):
    """The server's end of a socket on which descriptors of shared memory travel; `limits` are what is granted, and
    `owner` names the worker in its segments."""

    end: socket
    limits: SegmentLimits
    owner: int


class SegmentAllowance:
    """Taken when a stage's worker starts and put back at its end: what it is granted it may use without asking."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, wanted: SegmentLimits) -> SegmentLimits:
        """Half of what is left at most, while there are more than a few, so that the next stage has some, too."""
        granted = min(wanted.number, max(self.left // 2, min(self.left, FEW), 0)) if wanted.size else 0
        self.left -= granted
        return SegmentLimits(wanted.size, granted) if granted else READS

    def go_on_with(self, granted: SegmentLimits) -> None:
        """A frontend before this one has granted them, and its worker goes on."""
        self.left -= granted.number

    def put_back(self, granted: SegmentLimits) -> None:
        self.left += granted.number
