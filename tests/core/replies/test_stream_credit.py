"""Both ends of a stream's credit, as objects: the server's, and the worker's that obeys it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.replies.stream_credit import FIRST, WHOLE, StreamBuffers, StreamCredit
from msx_core.reply_credit import ReplyCredit


class Stream:
    """A worker that sends whenever it may, and a client that takes when it is told to."""

    def __init__(self, buffers: StreamBuffers, *, held: bool = True) -> None:
        self.worker = ReplyCredit()
        self.worker.credit = buffers.first
        self.grants: list[int] = []
        self.credit = StreamCredit(buffers, self._grant)
        self.credit.held = held
        self.waiting = 0

    def _grant(self, limit: int) -> None:
        self.grants.append(limit)
        self.worker.grant(limit)

    def send(self, size: int) -> bool:
        """Whether the chunk was sent."""
        assert self.worker.spent == (self.waiting >= self.credit.room)
        if self.worker.spent:
            return False
        self.worker.sent += size
        self.waiting += size
        return True

    def fill(self, size: int) -> int:
        """Sends chunks until it may not; returns what waits."""
        while self.send(size):
            pass
        return self.waiting

    def take(self, size: int) -> None:
        self.waiting -= size
        self.credit.took(size)

    def flow(self, size: int, chunk: int) -> None:
        """So many bytes to a client that takes each chunk at once."""
        for _ in range(0, size, chunk):
            assert self.send(chunk)
            self.take(chunk)


def spread(streams: list[Stream], act: Callable[[Stream], object]) -> None:
    for stream in streams:
        act(stream)


def test_a_short_stream_costs_no_frame() -> None:
    stream = Stream(StreamBuffers())
    stream.flow(FIRST // 2 - 100, 100)
    assert stream.grants == []


def test_a_client_that_takes_nothing() -> None:
    stream = Stream(StreamBuffers())
    assert stream.fill(100) < FIRST + 100
    assert stream.grants == []
    assert stream.waiting >= stream.credit.room


def test_a_client_that_has_taken_something_may_have_the_whole_size_waiting() -> None:
    buffers = StreamBuffers()
    stream = Stream(buffers)
    stream.flow(FIRST, 100)
    assert buffers.size / 2 <= stream.fill(100) < buffers.size + 100


def test_frames_are_rare() -> None:
    """One for each half of what may wait."""
    buffers = StreamBuffers()
    stream = Stream(buffers)
    stream.flow(100 << 20, 1 << 10)
    assert len(stream.grants) <= 2 * 100 + 1


def test_many_streams_share_what_there_is() -> None:
    """The first ones have all that they may have, and the others enough to go on."""
    buffers = StreamBuffers()
    streams = [Stream(buffers) for _ in range(1000)]
    spread(streams, lambda stream: stream.flow(FIRST, 1 << 10))
    spread(streams, lambda stream: stream.fill(1 << 10))
    held = sum(stream.waiting for stream in streams)
    assert held <= WHOLE * buffers.size + len(streams) * (FIRST + (1 << 10)) < 150 << 20
    assert buffers.left == 0
    late = Stream(buffers)
    late.flow(10 << 20, 1 << 10)
    spread(streams, lambda stream: stream.credit.close())
    assert buffers.left == WHOLE * (buffers.size - FIRST)
    late.flow(1 << 20, 1 << 10)
    assert late.fill(1 << 10) > buffers.size / 2, "what others have given back is there for those that go on"


def test_what_is_held_is_reserved_until_it_is_taken_or_dropped() -> None:
    buffers = StreamBuffers()
    whole, stream = buffers.left, Stream(buffers)
    stream.flow(FIRST, 100)
    assert buffers.left == whole - (buffers.size - FIRST)
    stream.credit.end()
    assert buffers.left < whole
    for _ in range(2):
        stream.credit.close()
        assert buffers.left == whole


def test_what_nobody_holds_reserves_nothing() -> None:
    buffers = StreamBuffers()
    whole, stream = buffers.left, Stream(buffers, held=False)
    stream.flow(10 << 20, 1 << 10)
    assert buffers.left == whole


def test_after_the_end_no_frame_is_sent() -> None:
    stream = Stream(StreamBuffers())
    size = stream.fill(100)
    stream.credit.end()
    stream.take(size)
    assert stream.grants == []


@pytest.mark.parametrize("size", [1, 2, 1000, FIRST, FIRST + 1, 1 << 20])
def test_any_size(size: int) -> None:
    buffers = StreamBuffers(size)
    stream = Stream(buffers)
    for _ in range(10):
        assert stream.fill(7) < size + 7
        stream.take(stream.waiting)


Steps = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["send", "take", "close"]), st.integers(1, 300)))


@given(st.integers(1, 500), Steps)
def test_streams_never_hold_more_than_they_may_and_never_stand_still(
    size: int, steps: list[tuple[int, str, int]]
) -> None:
    buffers = StreamBuffers(size)
    buffers.first, buffers.left = min(32, size), (size - min(32, size)) * 2
    all_of_them = buffers.left
    streams = [Stream(buffers) for _ in range(5)]
    for number, action, count in steps:
        stream = streams[number]
        if action == "send":
            stream.send(count)
        elif action == "take":
            stream.take(min(count, stream.waiting))
        else:
            stream.credit.close()
            stream.worker.lift()
            streams[number] = Stream(buffers)
        assert all(one.waiting < size + 300 for one in streams)
        assert sum(one.waiting for one in streams) <= all_of_them + 5 * (buffers.first + 300)
        assert buffers.left >= 0
    for stream in streams:
        stream.take(stream.waiting)
        assert not stream.worker.spent, "who has taken everything gets more"
        stream.credit.close()
    assert buffers.left == all_of_them
