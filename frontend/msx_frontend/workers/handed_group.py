"""Description of a worker group that one frontend hands to another while it runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from msx_protocol import Loaded, MetricInfo

GAP = 1 << 32
"""Numbers that are left to requests of the frontend before, which may send some still."""


class HandedBatch(msgspec.Struct):
    """`jobs` are not answered yet: the number of each, and its status once its reply has begun. `age`: seconds since
    the worker began it; None before that."""

    kind: str
    size: int
    age: float | None
    joins: bool
    jobs: list[tuple[int, int]]


class HandedSequence(msgspec.Struct):
    """An open sequence whose state the group has; or one that has `ended`, and why. `left`: seconds until it is too
    old; None without such a limit. `closing`: a request ends it. `running`: numbers of its jobs that are not answered
    yet."""

    id: str
    left: float | None
    closing: bool = False
    running: list[int] = []
    ended: str = ""


class HandedGroup(msgspec.Struct):
    """`loaded` and `forms` are what its rank 0 has told. `number` is that of the last request that was sent."""

    loaded: Loaded
    forms: list[MetricInfo]
    number: int
    batches: list[HandedBatch]
    ranks: int
    sequences: list[HandedSequence] = []
    shares: bool = False
    """A stage's, with a socket for shared memory: nothing is shared now."""


class Handing(NamedTuple):
    """A group with its connections, in the frontend that takes it over. `ends` has the data and control socket of each
    rank, and `begun` the beginnings of frames that were read from them; `relay` are data and control to the other
    frontend. `segments`: a stage's socket for shared memory."""

    group: HandedGroup
    ends: Sequence[tuple[socket.socket, socket.socket]]
    begun: Sequence[tuple[bytes, bytes]]
    relay: tuple[socket.socket, socket.socket]
    segments: socket.socket | None = None

    def close(self) -> None:
        for end in (*(one for pair in self.ends for one in pair), *self.relay):
            end.close()
        if self.segments is not None:
            self.segments.close()


def described(group: HandedGroup) -> dict[str, Any]:
    """Members of a message in JSON."""
    found: dict[str, Any] = msgspec.to_builtins(group)
    return found


def received(message: dict[str, Any], descriptors: Sequence[int]) -> Handing:
    """The descriptors are those of `Given`."""
    group = msgspec.convert(message, HandedGroup)
    segments = socket.socket(fileno=descriptors[-1]) if group.shares else None
    *ends, data, control = descriptors[:-1] if group.shares else descriptors
    sockets, begun = ends[: 2 * group.ranks], [_content(fd) for fd in ends[2 * group.ranks :]]
    made = [socket.socket(fileno=fd) for fd in sockets]
    return Handing(
        group,
        [(made[at], made[at + 1]) for at in range(0, len(made), 2)],
        [(begun[at], begun[at + 1]) for at in range(0, len(begun), 2)],
        (socket.socket(fileno=data), socket.socket(fileno=control)),
        segments,
    )


def memory_file(parts: Sequence[bytes | bytearray]) -> int:
    """Descriptor of a file in memory with these bytes, which may be many."""
    fd = os.memfd_create("msx-frame")
    for part in parts:
        view = memoryview(part)
        while view:
            view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _content(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()
