"""Answers: windows of both sides, what waits, and who is told."""

from __future__ import annotations

import pytest

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.limits import Limits
from tests.net.http2.peer import OK, REQUEST, STATUS, Frame, Owner, Peer, in_loop

END = frames.END_STREAM | frames.END_HEADERS


def bodies(answer: list[Frame], stream_id: int = 1) -> bytes:
    return b"".join(frame.payload for frame in answer if frame.kind == frames.DATA and frame.stream_id == stream_id)


def shape(answer: list[Frame]) -> list[tuple[int, int, int]]:
    return [(frame.kind, frame.flags, len(frame.payload)) for frame in answer]


def initial_window(size: int) -> bytes:
    return frames.frame(frames.SETTINGS, 0, 0, b"\0\4" + size.to_bytes(4, "big"))


@in_loop
async def test_a_streamed_answer() -> None:
    peer = Peer()
    owner = peer.request(1)
    owner.stream.send_headers(OK)
    owner.stream.send_data(b"one")
    owner.stream.send_data(b"")
    assert not owner.stream.blocked
    assert shape(await peer.answers()) == [(frames.HEADERS, frames.END_HEADERS, len(OK)), (frames.DATA, 0, 3)]
    owner.stream.send_trailers(STATUS)
    assert shape(await peer.answers()) == [(frames.HEADERS, END, len(STATUS))]
    assert owner.stream.finished
    assert peer.protocol.streams == 0
    assert owner.drains == 0, "it was never blocked"


@in_loop
async def test_a_large_answer_goes_in_frames_that_the_client_takes() -> None:
    peer = Peer()
    owner = peer.request(1)
    owner.stream.send_whole(OK, bytes(40_000), STATUS)
    sizes = [len(frame.payload) for frame in await peer.answers() if frame.kind == frames.DATA]
    assert sizes == [16_384, 16_384, 7_232]
    peer.send(frames.frame(frames.SETTINGS, 0, 0, b"\0\5" + (20_000).to_bytes(4, "big")))
    peer.request(3).stream.send_whole(OK, bytes(24_000), STATUS)
    sizes = [len(frame.payload) for frame in await peer.answers() if frame.kind == frames.DATA]
    assert sizes == [20_000, 4_000]


@in_loop
async def test_the_ack_of_a_larger_window_leaves_before_what_it_allows() -> None:
    """gRPC's clients count what comes before it against the window that was."""
    peer = Peer()
    peer.send(initial_window(0))
    peer.request(1).stream.send_whole(OK, bytes(10), STATUS)
    await peer.received()
    peer.send(initial_window(100))
    kinds = [frame.kind for frame in await peer.received()]
    assert kinds == [frames.SETTINGS, frames.DATA, frames.HEADERS]


@in_loop
async def test_an_answer_waits_for_the_streams_window() -> None:
    peer = Peer()
    peer.send(initial_window(10))
    owner = peer.request(1)
    data = bytes(range(25))
    owner.stream.send_whole(OK, data, STATUS)
    assert owner.stream.blocked
    got = await peer.answers()
    assert shape(got) == [(frames.HEADERS, frames.END_HEADERS, len(OK)), (frames.DATA, 0, 10)]
    peer.send(frames.window_update(1, 10))
    got += (last := await peer.answers())
    assert shape(last) == [(frames.DATA, 0, 10)]
    assert peer.protocol.streams == 1
    peer.send(frames.window_update(1, 10))
    got += (last := await peer.answers())
    assert shape(last) == [(frames.DATA, 0, 5), (frames.HEADERS, END, len(STATUS))]
    assert bodies(got) == data
    assert peer.protocol.streams == 0
    assert (owner.drains, owner.reasons) == (0, []), "who has said all hears no more"


@in_loop
async def test_a_writer_that_waits_is_told() -> None:
    peer = Peer()
    peer.send(initial_window(10))
    owner = peer.request(1)
    owner.stream.send_headers(OK)
    owner.stream.send_data(b"12345678")
    assert not owner.stream.blocked
    owner.stream.send_data(b"abcdef")
    assert owner.stream.blocked
    owner.stream.send_data(b"ghi")
    peer.send(frames.window_update(1, 4))
    assert owner.drains == 0
    peer.send(frames.window_update(1, 100))
    assert owner.drains == 1
    assert bodies(await peer.answers()) == b"12345678abcdefghi"


@in_loop
async def test_the_connections_window_is_shared_in_turns() -> None:
    peer = Peer()
    peer.send(initial_window(1 << 20))
    owners = [peer.request(number) for number in (1, 3)]
    for owner in owners:
        owner.stream.send_whole(OK, bytes(100_000), STATUS)
    await peer.answers()  # the first one took all of the 65,535
    peer.send(frames.window_update(0, 1 << 16))
    order = [frame.stream_id for frame in await peer.answers() if frame.kind == frames.DATA]
    assert order[:4] in ([1, 3, 1, 3], [3, 1, 3, 1])
    peer.send(frames.window_update(0, 1 << 20))
    await peer.answers()
    assert peer.protocol.streams == 0


@in_loop
async def test_settings_change_windows_of_open_streams_below_none() -> None:
    peer = Peer()
    peer.send(initial_window(10))
    owner = peer.request(1)
    owner.stream.send_whole(OK, bytes(30), STATUS)
    peer.send(initial_window(4))
    assert owner.stream.send_window == -6
    peer.send(frames.window_update(1, 6))
    assert len(bodies(await peer.answers())) == 10
    peer.send(frames.window_update(1, 1))
    assert len(bodies(await peer.answers())) == 1
    peer.send(initial_window(1_000))
    assert len(bodies(await peer.answers())) == 19
    assert peer.protocol.streams == 0


@in_loop
async def test_a_window_that_shrinks_while_its_stream_stands_in_line() -> None:
    peer = Peer()
    peer.send(initial_window(100))
    peer.protocol.pause_writing()
    owner = peer.request(1)
    owner.stream.send_data(bytes(50))
    peer.send(initial_window(0))
    peer.protocol.resume_writing()
    assert await peer.answers() == []
    peer.send(initial_window(20), initial_window(0), initial_window(40))
    assert len(bodies(await peer.answers())) == 40
    peer.send(frames.window_update(1, 100))
    assert len(bodies(await peer.answers())) == 10
    assert owner.drains == 1


@in_loop
async def test_nothing_of_a_stream_is_sent_while_the_transport_is_full() -> None:
    peer = Peer()
    await peer.received()
    peer.protocol.pause_writing()
    one, other = peer.request(1), peer.request(3)
    one.stream.send_whole(OK, b"data", STATUS)
    other.stream.send_headers(STATUS, end=True)
    assert await peer.answers() == []
    assert peer.protocol.streams == 2, "who reads nothing cannot begin ever more"
    peer.protocol.resume_writing()
    assert len(await peer.answers()) == 4
    assert peer.protocol.streams == 0


@in_loop
async def test_a_large_answer_stops_where_the_transport_is_full() -> None:
    peer = Peer()
    peer.send(initial_window(1 << 24), frames.window_update(0, 1 << 24))
    write = peer.transport.write

    def full(data: bytes) -> None:
        write(data)
        peer.protocol.pause_writing()

    peer.transport.write = full  # type: ignore[method-assign]
    owner = peer.request(1)
    owner.stream.send_whole(OK, bytes(4 << 20), STATUS)
    assert owner.stream.blocked
    sent = len(bodies(await peer.answers()))
    assert 1 << 18 <= sent < 1 << 20
    while owner.stream.blocked:
        peer.protocol.resume_writing()
        sent += len(bodies(await peer.answers()))
    assert sent == 4 << 20


@in_loop
async def test_a_client_that_has_not_said_all_need_not() -> None:
    peer = Peer()
    owner = peer.open(1)
    owner.stream.send_headers(STATUS, end=True)
    answer = await peer.answers()
    assert [frame.kind for frame in answer] == [frames.HEADERS, frames.RST_STREAM]
    assert answer[1].number == ErrorCode.NO_ERROR
    peer.send(frames.frame(frames.DATA, frames.END_STREAM, 1, b"late"))
    assert owner.body == b""
    assert not peer.transport.ended


@in_loop
async def test_our_reset() -> None:
    peer = Peer()
    peer.send(initial_window(2))
    owner = peer.request(1)
    owner.stream.send_headers(OK)
    owner.stream.send_data(b"some")
    await peer.answers()
    owner.stream.reset(ErrorCode.CANCEL)
    owner.stream.send_data(b"more")
    owner.stream.send_trailers(STATUS)
    owner.stream.reset(ErrorCode.CANCEL)
    peer.send(frames.window_update(1, 100), frames.frame(frames.RST_STREAM, 0, 1, bytes(4)))
    answer = await peer.answers()
    assert [(frame.kind, frame.number) for frame in answer] == [(frames.RST_STREAM, ErrorCode.CANCEL)]
    assert (owner.reasons, owner.drains) == ([], 0)


@in_loop
async def test_the_clients_reset() -> None:
    peer = Peer()
    peer.send(initial_window(2))
    owner = peer.request(1)
    owner.stream.send_data(b"some")
    peer.send(frames.frame(frames.RST_STREAM, 0, 1, (8).to_bytes(4, "big")))
    assert owner.reasons == ["the client reset the stream (CANCEL)"]
    owner.stream.send_data(b"more")
    peer.send(frames.window_update(1, 100))
    assert bodies(await peer.answers()) == b"so"
    peer.protocol.connection_lost(None)
    assert len(owner.reasons) == 1


@in_loop
async def test_a_lost_connection_is_told_unless_the_answer_was_complete() -> None:
    peer = Peer()
    peer.send(initial_window(2))
    one, other = peer.open(1), peer.request(3)
    other.stream.send_whole(OK, b"some", STATUS)
    peer.protocol.connection_lost(None)
    assert one.reasons == ["the connection was lost"]
    assert other.reasons == []
    assert peer.lost == [peer.protocol]


# -- what comes in --


@in_loop
async def test_windows_are_given_back_in_large_pieces() -> None:
    peer = Peer(Limits(stream_window=100_000))
    owner = peer.open(1)
    piece = frames.frame(frames.DATA, 0, 1, bytes(10_000))
    for _ in range(4):
        peer.send(piece)
        owner.stream.consumed(10_000)
    assert await peer.answers() == []
    peer.send(piece)
    assert await peer.answers() == []
    owner.stream.consumed(10_000)
    assert [(frame.kind, frame.number) for frame in await peer.answers()] == [(frames.WINDOW_UPDATE, 50_000)]


@in_loop
async def test_padding_is_given_back_at_once() -> None:
    peer = Peer(Limits(stream_window=65_535))
    owner = peer.open(1)
    for _ in range(140):
        peer.send(frames.frame(frames.DATA, frames.PADDED, 1, b"\xffx" + bytes(255)))
    assert owner.body == b"x" * 140
    assert sum(frame.number for frame in await peer.answers()) == 128 * 256


@in_loop
async def test_more_than_the_streams_window() -> None:
    peer = Peer(Limits(stream_window=65_535))
    owner = peer.open(1)
    for _ in range(5):
        peer.send(frames.frame(frames.DATA, 0, 1, bytes(16_000)))
    assert len(owner.body) == 64_000
    assert owner.reasons == ["Stream 1 sent more than its window: wait for WINDOW_UPDATE."]
    answer = await peer.answers()
    assert [(frame.kind, frame.number) for frame in answer] == [(frames.RST_STREAM, ErrorCode.FLOW_CONTROL_ERROR)]


@in_loop
async def test_the_connections_window_is_given_back_at_once() -> None:
    """Streams whose owners wait for the rest must not wait for each other."""
    peer = Peer(Limits(connection_window=100_000, stream_window=100_000))
    await peer.received()
    for number in range(1, 21, 2):
        peer.open(number)
        peer.send(frames.frame(frames.DATA, 0, number, bytes(15_000)))
    updates = [frame for frame in await peer.received() if frame.kind == frames.WINDOW_UPDATE]
    assert [(frame.stream_id, frame.number) for frame in updates] == [(0, 60_000), (0, 60_000)]


@in_loop
async def test_what_all_streams_hold_is_bounded() -> None:
    peer = Peer(Limits(max_held=40_000))
    first, second = peer.open(1), peer.open(3)
    for owner in (first, second):
        peer.send(frames.frame(frames.DATA, 0, owner.stream.id, bytes(15_000)))
    first.stream.consumed(15_000)
    peer.send(frames.frame(frames.DATA, 0, 1, bytes(15_000)))
    assert (first.reasons, second.reasons) == ([], [])
    peer.send(frames.frame(frames.DATA, 0, 3, bytes(15_000)))
    assert second.reasons == ["The requests of this connection hold more than 40000 bytes: send fewer at once."]
    third = peer.open(5)
    peer.send(frames.frame(frames.DATA, 0, 5, bytes(15_000)))
    assert third.reasons == [], "what the lost stream held is free"
    second.stream.consumed(30_000)  # its owner was late
    peer.send(frames.frame(frames.DATA, 0, 5, bytes(15_000)))
    assert third.reasons != []


@in_loop
async def test_content_length_is_kept() -> None:
    def with_length(peer: Peer, number: int, length: bytes, *, body: bytes | None) -> Owner:
        return peer.request(number, body, [*REQUEST, (b"content-length", length)])

    peer = Peer()
    assert with_length(peer, 1, b"4", body=b"body").over
    for number, length in ((3, b"3"), (5, b"5")):
        owner = with_length(peer, number, length, body=b"body")
        assert not owner.over
        assert owner.reasons == ["The body has another length than content-length says."]
    for number, length, body in ((7, b"x", b"body"), (9, b"4", None)):
        with pytest.raises(KeyError):
            with_length(peer, number, length, body=body)
    resets = [frame for frame in await peer.answers() if frame.kind == frames.RST_STREAM]
    assert [frame.number for frame in resets] == [ErrorCode.PROTOCOL_ERROR] * 4


@in_loop
async def test_a_whole_answer_without_trailers_ends_with_its_body() -> None:
    peer = Peer()
    peer.request(1).stream.send_whole(OK, b"body")
    peer.request(3).stream.send_whole(OK, b"")
    answers = await peer.answers()
    assert shape(answers) == [
        (frames.HEADERS, frames.END_HEADERS, len(OK)),
        (frames.DATA, frames.END_STREAM, 4),
        (frames.HEADERS, END, len(OK)),
    ]
    assert peer.protocol.streams == 0


@in_loop
async def test_a_large_answer_without_trailers_ends_with_its_last_frame() -> None:
    peer = Peer()
    peer.request(1).stream.send_whole(OK, bytes(20_000))
    assert shape(await peer.answers())[1:] == [(frames.DATA, 0, 16_384), (frames.DATA, frames.END_STREAM, 3_616)]
    assert peer.protocol.streams == 0


@in_loop
async def test_the_end_of_a_streamed_answer_needs_no_window() -> None:
    """Also where the client made its window smaller than what it had got."""
    peer = Peer()
    peer.send(initial_window(10))
    stream = peer.request(1).stream
    stream.send_headers(OK)
    stream.send_data(bytes(10))
    peer.send(initial_window(5))
    await peer.answers()
    stream.send_data(b"", end=True)
    assert shape(await peer.answers()) == [(frames.DATA, frames.END_STREAM, 0)]
    assert stream.finished
    assert peer.protocol.streams == 0


def refused() -> tuple[Peer, Owner]:
    """A client that is still writing, and has got its whole answer."""
    peer = Peer(Limits(stream_window=1 << 16, max_refused_body=1 << 20))
    owner = peer.open(1)
    peer.send(frames.frame(frames.DATA, 0, 1, bytes(1000)))
    owner.stream.send_whole(OK, b"no")
    return peer, owner


@in_loop
async def test_the_rest_of_a_refused_request_is_read_and_dropped() -> None:
    peer, owner = refused()
    assert shape(await peer.answers()) == [
        (frames.HEADERS, frames.END_HEADERS, len(OK)),
        (frames.DATA, frames.END_STREAM, 2),
    ]
    assert peer.protocol.held == 0
    for _ in range(20):
        peer.send(frames.frame(frames.DATA, 0, 1, bytes(16_000)))
    assert {frame.kind for frame in await peer.answers()} == {frames.WINDOW_UPDATE}
    peer.send(frames.frame(frames.DATA, frames.END_STREAM, 1, b""))
    assert await peer.answers() == []
    assert peer.protocol.streams == 0
    assert len(owner.body) == 1000


@in_loop
async def test_the_rest_of_a_refused_request_is_read_up_to_a_limit() -> None:
    peer, _ = refused()
    await peer.answers()
    for _ in range((1 << 20) // 16_000 + 1):
        assert peer.protocol.streams == 1
        peer.send(frames.frame(frames.DATA, 0, 1, bytes(16_000)))
    last = (await peer.answers())[-1]
    assert (last.kind, last.number) == (frames.RST_STREAM, ErrorCode.NO_ERROR)
    assert peer.protocol.streams == 0
    peer.send(frames.frame(frames.DATA, 0, 1, bytes(16_000)))
    assert not peer.transport.ended


@in_loop
async def test_a_client_that_stops_to_write_a_refused_request() -> None:
    peer, _ = refused()
    await peer.answers()
    for _ in range(3):
        peer.look(1)
        assert peer.protocol.streams == 1
        peer.send(frames.frame(frames.DATA, 0, 1, bytes(16_000)))
    peer.look(1)
    peer.look(1)
    last = (await peer.answers())[-1]
    assert (last.kind, last.number) == (frames.RST_STREAM, ErrorCode.NO_ERROR)


@in_loop
async def test_the_rest_of_a_refused_request_that_comes_too_slowly() -> None:
    peer, _ = refused()
    await peer.answers()
    for _ in range(12):
        peer.send(frames.frame(frames.DATA, 0, 1, b"x"))
        peer.look(1)
    assert [(one.kind, one.number) for one in await peer.answers()] == [(frames.RST_STREAM, ErrorCode.NO_ERROR)]


@in_loop
async def test_trailers_and_resets_of_refused_requests() -> None:
    peer, _ = refused()
    block = peer.encoder.encode([(b"x-checksum", b"1")])
    peer.send(frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, block))
    assert peer.protocol.streams == 0
    peer.open(3).stream.send_whole(OK, b"no")
    peer.send(frames.rst_stream(3, ErrorCode.CANCEL))
    assert peer.protocol.streams == 0
    assert not peer.transport.ended
