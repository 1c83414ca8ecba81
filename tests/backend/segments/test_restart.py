"""Shared memory of a stage's worker that another frontend takes over after a crash."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from msx_backend.segments.space import SegmentSpace
from msx_backend.segments.values import RequestValues
from msx_core.packed import unpack
from msx_protocol.segments import OFFERED, SegmentMade, SegmentUse, receive_segment_message

pytestmark = pytest.mark.skipif(not OFFERED, reason="memfd_create(2) is Linux's")

SIZE = 200_000
OWNER = 7


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@pytest.fixture
def ends() -> Iterator[list[socket.socket]]:
    """Sockets of the worker and of its first frontend; then that of the next frontend."""
    ours, theirs = pair()
    made = [ours, theirs]
    yield made
    for sock in made:
        sock.close()


def restarted(space: SegmentSpace, ends: list[socket.socket]) -> socket.socket:
    ends[1].close()
    ours, theirs = pair()
    ends.append(theirs)
    space.restart(ours.detach())
    return theirs


def made(sock: socket.socket) -> int:
    """Number of the segment that the worker has made."""
    received = receive_segment_message(sock)
    assert received is not None
    message, fd = received
    assert isinstance(message, SegmentMade)
    assert fd is not None
    os.close(fd)
    return message.number


def test_what_was_lent_is_lost_and_another_number_follows(ends: list[socket.socket]) -> None:
    space = SegmentSpace(ends[0], SegmentUse(OWNER, 1 << 24, 8))
    values = RequestValues(space, [])
    values.pack(b"a" * SIZE)
    assert made(ends[1]) == 1
    after = restarted(space, ends)
    values.close()
    assert (len(space.pool), space.pool.size) == (0, 0)
    RequestValues(space, []).pack(b"b" * SIZE)
    assert made(after) == 2


def test_a_request_that_runs_meanwhile_sends_to_nobody(ends: list[socket.socket]) -> None:
    space = SegmentSpace(ends[0], SegmentUse(OWNER, 1 << 24, 8))
    ends[1].close()
    values = RequestValues(space, [])
    output = values.output((SIZE,), np.uint8)
    body = values.pack(output)
    restarted(space, ends)
    values.pack({"output": output})
    values.close()
    assert body
    assert (space.pool.in_use, len(space.pool)) == (0, 1)  # the copy that was made after that


def test_what_a_handler_has_mapped_stays_while_it_keeps_it(ends: list[socket.socket]) -> None:
    owner_end, other = pair()
    owner = SegmentSpace(owner_end, SegmentUse(1, 1 << 24, 8))
    written = RequestValues(owner, [])
    body = written.pack(np.full(SIZE, 3, np.uint8))
    received = receive_segment_message(other)
    assert received is not None
    message, fd = received
    assert isinstance(message, SegmentMade)
    assert fd is not None
    space = SegmentSpace(ends[0], SegmentUse(OWNER, 1 << 24, 8))
    space._take(SegmentMade(1, message.size, 1), fd)
    values = RequestValues(space, [(1, 1)])
    array = unpack(body, resolve=values.resolve)
    restarted(space, ends)
    values.close()
    assert (space._mapped, int(array[-1])) == ({}, 3)
    for sock in (owner_end, other):
        sock.close()
