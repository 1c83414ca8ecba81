from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from msx_backend.replies import ReplyWriter
from msx_core.failures import RequestFailure
from msx_core.reply_head import ReplyHead
from msx_protocol import LARGE, Chunk, Chunks, CompleteReplies, Dropped, Failed, FrameReader, Loaded, ToFrontend
from msx_sdk.request import InferenceRequest
from tests.backend.harness import one_by_one
from tests.frames import fed

LIMIT = 10


class Pipe:
    def __init__(self) -> None:
        self.near, self.far = socket.socketpair()
        self.writer = ReplyWriter(self.near, LIMIT)
        self.reader: FrameReader[Any] = FrameReader(ToFrontend)

    def read(self) -> list[tuple[Any, bytes]]:
        """Replies that have left by now."""
        self.writer.flush()
        return self.look()

    def look(self) -> list[tuple[Any, bytes]]:
        """Answers one by one."""
        return list(one_by_one(self._received()))

    def frames(self) -> list[tuple[Any, bytes]]:
        """As they left."""
        self.writer.flush()
        return self._received()

    def _received(self) -> list[tuple[Any, bytes]]:
        try:
            return fed(self.reader, self.far.recv(1 << 18, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return []


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.near.close()
    pipe.far.close()


def requests_of(*numbers: int) -> list[InferenceRequest]:
    return [InferenceRequest(f"id-{number}", {}, number=number) for number in numbers]


def test_chunks_carry_the_head_once(pipe: Pipe) -> None:
    (request,) = requests_of(1)
    pipe.writer.chunk(request, b"a", ReplyHead(201, "Made", [("X-A", "1")]), False)
    pipe.writer.chunk(request, b"b", None, True)
    assert pipe.read() == [(Chunk(1, False, 201, "Made", [("X-A", "1")]), b"a"), (Chunk(1, True), b"b")]


def test_a_failure(pipe: Pipe) -> None:
    (request,) = requests_of(1)
    pipe.writer.fail(request, RequestFailure(400, "no", "Traceback"))
    assert pipe.read() == [(Failed(1, 400, "no", "Traceback"), b"")]


def test_a_failure_that_quotes_half_a_character(pipe: Pipe) -> None:
    (request,) = requests_of(1)
    pipe.writer.fail(request, RequestFailure(400, "no \ud800", "Traceback \udcff"))
    assert pipe.read() == [(Failed(1, 400, "no \\ud800", "Traceback \\udcff"), b"")]


def test_nothing_follows_a_requests_end(pipe: Pipe) -> None:
    (request,) = requests_of(1)
    pipe.writer.chunk(request, b"a", ReplyHead(), True)
    pipe.read()
    pipe.writer.chunk(request, b"b", None, False)
    pipe.writer.chunk(request, b"b", None, True)
    pipe.writer.fail(request, RequestFailure(503, "late"))
    pipe.writer.drop_unanswered([request])
    assert pipe.read() == []


def test_the_unanswered_are_dropped(pipe: Pipe) -> None:
    one, two = requests_of(1, 2)
    pipe.writer.chunk(one, b"a", ReplyHead(), True)
    pipe.writer.drop_unanswered([one, two])
    assert [message for message, _ in pipe.read()] == [Chunk(1, True, 200, "", []), Dropped(2)]


def test_a_response_at_the_limit_passes_and_one_beyond_fails(pipe: Pipe) -> None:
    one, two = requests_of(1, 2)
    pipe.writer.chunk(one, b"x" * LIMIT, ReplyHead(), True)
    pipe.writer.chunk(two, b"x" * (LIMIT + 1), ReplyHead(), True)
    (_, (failed, _)) = pipe.read()
    assert (failed.number, failed.status) == (2, 500)
    assert "11 bytes is larger than max_response_size (10 bytes)" in failed.message


def test_a_stream_ends_with_its_chunk_that_is_too_large(pipe: Pipe) -> None:
    (request,) = requests_of(1)
    pipe.writer.chunk(request, b"a", ReplyHead(), False)
    pipe.writer.chunk(request, b"x" * (LIMIT + 1), None, False)
    pipe.writer.chunk(request, b"b", None, True)
    assert [type(message) for message, _ in pipe.read()] == [Chunk, Failed]


def test_progress_counts_what_was_sent(pipe: Pipe) -> None:
    (request,) = requests_of(1)
    pipe.writer.send(Loaded(False, 0.0))
    pipe.writer.chunk(request, b"a", ReplyHead(), True)
    pipe.writer.chunk(request, b"late", None, True)
    assert pipe.writer.progress == 2


def test_answers_are_held_until_they_are_flushed(pipe: Pipe) -> None:
    one, two = requests_of(1, 2)
    pipe.writer.chunk(one, b"a", ReplyHead(), True)
    pipe.writer.fail(two, RequestFailure(400, "no"))
    assert pipe.look() == []
    assert pipe.writer.holds
    assert len(pipe.read()) == 2
    assert (pipe.writer.writes, pipe.writer.holds) == (1, False)


def test_a_held_answer_is_what_it_was_when_it_was_given(pipe: Pipe) -> None:
    (request,) = requests_of(1)
    pipe.writer.chunk(request, buffer := bytearray(b"a"), None, True)
    buffer[:] = b"b"
    assert pipe.read() == [(Chunk(1, True), b"a")]


def test_a_large_answer_leaves_at_once_and_in_order(pipe: Pipe) -> None:
    writer = ReplyWriter(pipe.near, 1 << 30)
    one, two = requests_of(1, 2)
    writer.chunk(one, b"a", None, True)
    writer.chunk(two, bytearray(LARGE), None, True)
    assert pipe.look() == [(Chunk(1, True), b"a"), (Chunk(2, True), bytes(LARGE))]


def test_what_tasks_of_one_turn_send_leaves_together(pipe: Pipe) -> None:
    turns: list[Callable[[], None]] = []
    pipe.writer.leave_together(turns.append)
    for request in requests_of(1, 2):
        pipe.writer.chunk(request, b"a", None, True)
        pipe.writer.flush()
    assert pipe.look() == []
    (turn,) = turns
    turn()
    assert len(pipe.look()) == 2
    pipe.writer.flush()
    assert len(turns) == 2


def test_whole_replies_of_the_same_head_are_one_frame(pipe: Pipe) -> None:
    one, two, three, four = requests_of(1, 2, 3, 4)
    pipe.writer.chunk(one, b"a", ReplyHead(), True)
    pipe.writer.chunk(two, b"", ReplyHead(), True)
    pipe.writer.chunk(three, b"bc", ReplyHead(200, "", [("X-A", "1")]), True)
    pipe.writer.chunk(four, b"d", ReplyHead(200, "", [("X-A", "1")]), True)
    assert pipe.frames() == [
        (CompleteReplies([1, 2], [1, 0], 200, "", []), b"a"),
        (CompleteReplies([3, 4], [2, 1], 200, "", [("X-A", "1")]), b"bcd"),
    ]


def test_what_is_not_a_whole_reply_keeps_its_place_between_them(pipe: Pipe) -> None:
    one, two, three = requests_of(1, 2, 3)
    pipe.writer.chunk(one, b"a", ReplyHead(), True)
    pipe.writer.fail(two, RequestFailure(400, "no"))
    pipe.writer.chunk(three, b"b", ReplyHead(), True)
    assert [type(message) for message, _ in pipe.frames()] == [CompleteReplies, Failed, CompleteReplies]


def test_a_frame_of_whole_replies_stays_small(pipe: Pipe) -> None:
    """Replies that are received in one buffer are not received in buffers of their own."""
    writer = ReplyWriter(pipe.near, 1 << 30)
    pipe.writer = writer
    for request in requests_of(1, 2, 3):
        writer.chunk(request, bytes(LARGE // 2), ReplyHead(), True)
    assert [len(body) for _, body in pipe.frames()] == [LARGE // 2] * 3
    assert writer.writes == 1


def test_a_head_that_changes_later_is_what_it_was_when_it_was_given(pipe: Pipe) -> None:
    one, two = requests_of(1, 2)
    head = ReplyHead(200, "", [("X-A", "1")])
    pipe.writer.chunk(one, b"a", head, True)
    assert head.headers is not None
    head.headers.append(("X-B", "2"))
    pipe.writer.chunk(two, b"b", head, True)
    assert [message.headers for message, _ in pipe.frames()] == [[("X-A", "1")], [("X-A", "1"), ("X-B", "2")]]


def begun(pipe: Pipe, *numbers: int) -> list[InferenceRequest]:
    """Requests whose first chunks have left."""
    requests = requests_of(*numbers)
    for request in requests:
        pipe.writer.chunk(request, b"", ReplyHead(), False)
    pipe.read()
    return requests


def test_further_chunks_of_several_replies_share_a_frame(pipe: Pipe) -> None:
    one, two = begun(pipe, 1, 2)
    for request, body in ((one, b"a"), (two, b"bb"), (one, b"")):
        pipe.writer.chunk(request, body, None, False)
    assert pipe.writer.holds
    assert pipe.frames() == [(Chunks([1, 2, 1], [1, 2, 0]), b"abb")]
    assert not pipe.writer.holds


def test_an_end_leaves_behind_the_chunks_before_it(pipe: Pipe) -> None:
    one, two, three = begun(pipe, 1, 2, 3)
    pipe.writer.chunk(one, b"a", None, False)
    pipe.writer.chunk(one, b"b", None, True)
    pipe.writer.chunk(two, b"c", None, False)
    pipe.writer.fail(two, RequestFailure(503, "no"))
    pipe.writer.chunk(three, b"d", None, False)
    pipe.writer.chunk(three, b"late", None, False)
    kinds = [(type(message), body) for message, body in pipe.frames()]
    assert kinds == [(Chunks, b"a"), (Chunk, b"b"), (Chunks, b"c"), (Failed, b""), (Chunks, b"dlate")]


def test_a_chunk_of_a_reply_that_has_ended_is_not_sent(pipe: Pipe) -> None:
    (request,) = begun(pipe, 1)
    pipe.writer.chunk(request, b"", None, True)
    pipe.writer.chunk(request, b"late", None, False)
    assert [type(message) for message, _ in pipe.frames()] == [Chunk]


def test_chunks_that_would_fill_a_large_frame_leave_in_two(pipe: Pipe) -> None:
    pipe.writer = ReplyWriter(pipe.near, 1 << 30)
    one, two = begun(pipe, 1, 2)
    for request in (one, two):
        pipe.writer.chunk(request, bytes(LARGE // 2), None, False)
    assert [message.numbers for message, _ in pipe.frames()] == [[1], [2]]


def test_chunks_that_are_held_leave_before_the_end_of_their_reply(pipe: Pipe) -> None:
    one, other = requests_of(1, 2)
    pipe.writer.chunk(one, b"a", ReplyHead(), last=False)
    pipe.writer.chunk(one, b"b", None, last=False)
    pipe.writer.chunk(one, b"c", None, last=False)
    assert pipe.writer.holds
    pipe.writer.chunk(one, b"d", None, last=True)
    pipe.writer.chunk(one, b"late", None, last=False)
    assert [body for _, body in pipe.read()] == [b"a", b"b", b"c", b"d"]
    pipe.writer.chunk(other, b"a", ReplyHead(), last=False)
    pipe.writer.chunk(other, b"b", None, last=False)
    pipe.writer.fail(other, RequestFailure(500, "no"))
    assert [body for _, body in pipe.read()] == [b"a", b"b", b""]
