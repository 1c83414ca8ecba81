"""Frames that a client may send when (RFC 9113 §5.1, §6), and how much of what brings it nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msx_net.http2 import frames, streams
from msx_net.http2.errors import ErrorCode
from msx_net.http2.frames import frame, rst_stream, window_update
from msx_net.http2.header_blocks import encode_headers
from msx_net.http2.limits import Limits
from tests.net.http2.peer import OK, REQUEST, STATUS, Peer, in_loop

BLOCK = encode_headers(REQUEST)
END = frames.END_HEADERS | frames.END_STREAM


def headers(stream_id: int, flags: int = END, block: bytes = BLOCK) -> bytes:
    return frame(frames.HEADERS, flags, stream_id, block)


def data(stream_id: int, payload: bytes = b"", flags: int = 0) -> bytes:
    return frame(frames.DATA, flags, stream_id, payload)


def initial_window(size: int) -> bytes:
    return frame(frames.SETTINGS, 0, 0, b"\0\4" + size.to_bytes(4, "big"))


OPEN = headers(5, frames.END_HEADERS)
HALF_CLOSED = headers(5)

FAULTS: dict[str, tuple[bytes, ErrorCode, str]] = {
    "DATA, idle": (data(5), ErrorCode.PROTOCOL_ERROR, "DATA came for stream 5, which is idle."),
    "DATA, the connection": (data(0), ErrorCode.PROTOCOL_ERROR, "DATA came for stream 0, which is idle."),
    "DATA, even": (data(2), ErrorCode.PROTOCOL_ERROR, "DATA came for stream 2, which is idle."),
    "DATA, half closed": (HALF_CLOSED + data(5), ErrorCode.STREAM_CLOSED, "DATA came for stream 5, which is closed."),
    "DATA, skipped": (HALF_CLOSED + data(3), ErrorCode.PROTOCOL_ERROR, "DATA came for stream 3, which was skipped."),
    "DATA, padding": (
        OPEN + data(5, b"\x05ab", frames.PADDED),
        ErrorCode.PROTOCOL_ERROR,
        "A frame's padding is longer than the frame.",
    ),
    "HEADERS, the connection": (headers(0), ErrorCode.PROTOCOL_ERROR, "HEADERS came for stream 0, which is idle."),
    "HEADERS, even": (headers(6), ErrorCode.PROTOCOL_ERROR, "HEADERS came for stream 6, which is idle."),
    "HEADERS, half closed": (
        HALF_CLOSED + headers(5),
        ErrorCode.STREAM_CLOSED,
        "HEADERS came for stream 5, which is closed.",
    ),
    "HEADERS, skipped": (
        HALF_CLOSED + headers(3),
        ErrorCode.PROTOCOL_ERROR,
        "HEADERS came for stream 3, which was skipped.",
    ),
    "HEADERS, no block": (
        headers(5, END, b"\x80"),
        ErrorCode.COMPRESSION_ERROR,
        "A header block cannot be decoded: Invalid table index 0.",
    ),
    "HEADERS in HEADERS": (
        headers(5, 0) + headers(7),
        ErrorCode.PROTOCOL_ERROR,
        "Only CONTINUATION may follow HEADERS.",
    ),
    "unknown in HEADERS": (
        headers(5, 0) + frame(0x50, 0, 0),
        ErrorCode.PROTOCOL_ERROR,
        "Only CONTINUATION may follow HEADERS.",
    ),
    "CONTINUATION of another": (
        headers(5, 0) + frame(frames.CONTINUATION, frames.END_HEADERS, 7),
        ErrorCode.PROTOCOL_ERROR,
        "CONTINUATION came for stream 7 without HEADERS before it.",
    ),
    "CONTINUATION alone": (
        OPEN + frame(frames.CONTINUATION, frames.END_HEADERS, 5),
        ErrorCode.PROTOCOL_ERROR,
        "CONTINUATION came for stream 5 without HEADERS before it.",
    ),
    "PRIORITY, the connection": (
        frame(frames.PRIORITY, 0, 0, bytes(5)),
        ErrorCode.PROTOCOL_ERROR,
        "PRIORITY belongs to a stream, not to the connection.",
    ),
    "PRIORITY, its size": (
        frame(frames.PRIORITY, 0, 5, bytes(4)),
        ErrorCode.FRAME_SIZE_ERROR,
        "A priority has 5 bytes.",
    ),
    "RST_STREAM, idle": (
        rst_stream(5, ErrorCode.CANCEL),
        ErrorCode.PROTOCOL_ERROR,
        "RST_STREAM came for stream 5, which is idle.",
    ),
    "RST_STREAM, the connection": (
        rst_stream(0, ErrorCode.CANCEL),
        ErrorCode.PROTOCOL_ERROR,
        "RST_STREAM belongs to a stream, not to the connection.",
    ),
    "RST_STREAM, its size": (
        OPEN + frame(frames.RST_STREAM, 0, 5, bytes(3)),
        ErrorCode.FRAME_SIZE_ERROR,
        "RST_STREAM has 4 bytes, not 3.",
    ),
    "SETTINGS, a stream": (
        frame(frames.SETTINGS, 0, 5),
        ErrorCode.PROTOCOL_ERROR,
        "SETTINGS belongs to the connection, not to stream 5.",
    ),
    "SETTINGS, its ACK": (
        frame(frames.SETTINGS, frames.ACK, 0, bytes(6)),
        ErrorCode.FRAME_SIZE_ERROR,
        "SETTINGS with ACK has 0 bytes, not 6.",
    ),
    "SETTINGS, a window too large": (
        OPEN + window_update(5, (1 << 31) - 70_000) + initial_window(80_000),
        ErrorCode.FLOW_CONTROL_ERROR,
        "The window of stream 5 is at most 2147483647 bytes.",
    ),
    "PUSH_PROMISE": (frame(frames.PUSH_PROMISE, 0, 5, bytes(4)), ErrorCode.PROTOCOL_ERROR, "A client cannot push."),
    "PING, a stream": (
        frame(frames.PING, 0, 5, bytes(8)),
        ErrorCode.PROTOCOL_ERROR,
        "PING belongs to the connection, not to stream 5.",
    ),
    "PING, its size": (
        frame(frames.PING, 0, 0, bytes(7)),
        ErrorCode.FRAME_SIZE_ERROR,
        "PING has 8 bytes, not 7.",
    ),
    "GOAWAY, a stream": (
        frame(frames.GOAWAY, 0, 5, bytes(8)),
        ErrorCode.PROTOCOL_ERROR,
        "GOAWAY belongs to the connection, not to stream 5.",
    ),
    "GOAWAY, its size": (
        frame(frames.GOAWAY, 0, 0, bytes(7)),
        ErrorCode.FRAME_SIZE_ERROR,
        "GOAWAY has at least 8 bytes, not 7.",
    ),
    "WINDOW_UPDATE, idle": (
        window_update(5, 1),
        ErrorCode.PROTOCOL_ERROR,
        "WINDOW_UPDATE came for stream 5, which is idle.",
    ),
    "WINDOW_UPDATE by 0": (window_update(0, 0), ErrorCode.PROTOCOL_ERROR, "A window cannot grow by 0."),
    "WINDOW_UPDATE, its size": (
        frame(frames.WINDOW_UPDATE, 0, 0, bytes(5)),
        ErrorCode.FRAME_SIZE_ERROR,
        "WINDOW_UPDATE has 4 bytes, not 5.",
    ),
    "WINDOW_UPDATE, too much": (
        window_update(0, (1 << 31) - 65_535),
        ErrorCode.FLOW_CONTROL_ERROR,
        "The connection's window is at most 2147483647 bytes.",
    ),
    "a frame too large": (
        frames.head(16_385, frames.DATA, 0, 5),
        ErrorCode.FRAME_SIZE_ERROR,
        "A frame has at most 16384 bytes (SETTINGS_MAX_FRAME_SIZE), not 16385.",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@in_loop
async def test_faults_of_the_connection(name: str) -> None:
    sent, code, text = FAULTS[name]
    peer = Peer()
    open_before = peer.open(1)
    peer.send(sent)
    assert await peer.goaway() == (code, text)
    assert open_before.reasons == [text]
    peer.send(headers(9))
    assert 9 not in peer.owners, "nothing counts that comes behind a fault"


STREAM_FAULTS: dict[str, tuple[bytes, ErrorCode, str]] = {
    "a window too large": (
        window_update(5, (1 << 31) - 65_535),
        ErrorCode.FLOW_CONTROL_ERROR,
        "The window of stream 5 is at most 2147483647 bytes.",
    ),
    "a window that grows by 0": (window_update(5, 0), ErrorCode.PROTOCOL_ERROR, "A window cannot grow by 0."),
    "trailers that end nothing": (
        headers(5, frames.END_HEADERS, STATUS),
        ErrorCode.PROTOCOL_ERROR,
        "Trailers came that do not end the request.",
    ),
    "trailers like a request": (headers(5), ErrorCode.PROTOCOL_ERROR, "':method' is not a name of a header."),
}


@pytest.mark.parametrize("name", STREAM_FAULTS)
@in_loop
async def test_faults_of_one_stream(name: str) -> None:
    sent, code, text = STREAM_FAULTS[name]
    peer = Peer()
    other, owner = peer.open(1), peer.open(5)
    peer.send(sent)
    assert [(one.kind, one.stream_id, one.number) for one in await peer.answers()] == [(frames.RST_STREAM, 5, code)]
    assert owner.reasons == [text]
    peer.send(data(5, b"late"), headers(5, END, STATUS), window_update(5, 1), rst_stream(5, ErrorCode.CANCEL))
    assert await peer.answers() == []
    assert (other.reasons, peer.transport.ended) == ([], False)


@in_loop
async def test_trailers_end_the_request() -> None:
    peer = Peer()
    owner = peer.open(1)
    peer.send(data(1, b"body"), headers(1, END, STATUS))
    assert (owner.body, owner.over) == (b"body", True)


@in_loop
async def test_an_empty_end() -> None:
    peer = Peer()
    owner = peer.open(1)
    peer.send(data(1, b"body"), data(1), data(1, b"", frames.END_STREAM))
    assert (owner.body, owner.over) == (b"body", True)


@in_loop
async def test_a_request_without_a_body_is_told_once() -> None:
    peer = Peer()
    assert peer.request(1).over


@in_loop
async def test_a_block_in_many_frames() -> None:
    peer = Peer()
    peer.send(headers(1, frames.END_STREAM, BLOCK[:3]))
    for byte in BLOCK[3:-1]:
        peer.send(frame(frames.CONTINUATION, 0, 1, bytes([byte])))
    assert not peer.owners
    peer.send(frame(frames.CONTINUATION, frames.END_HEADERS, 1, BLOCK[-1:]))
    assert (peer.owners[1].headers, peer.owners[1].over) == (REQUEST, True)


@in_loop
async def test_a_malformed_request_leaves_the_connection_as_it_is() -> None:
    peer = Peer()
    first = encode_headers(REQUEST[1:]) + b"\x40\x01x\x01y"
    peer.send(headers(1, END, first))
    assert [(one.kind, one.number) for one in await peer.answers()] == [(frames.RST_STREAM, ErrorCode.PROTOCOL_ERROR)]
    peer.send(headers(3, END, BLOCK + b"\xbe"))
    assert peer.owners[3].headers == [*REQUEST, (b"x", b"y")], "its fields are in the table all the same"


@in_loop
async def test_pings_and_settings_are_answered() -> None:
    peer = Peer()
    first = await peer.received()
    assert [(one.kind, one.flags) for one in first] == [
        (frames.SETTINGS, 0),
        (frames.WINDOW_UPDATE, 0),
        (frames.SETTINGS, frames.ACK),
    ]
    peer.send(frame(frames.PING, 0, 0, b"12345678"), frame(frames.PING, frames.ACK, 0, bytes(8)))
    assert [(one.flags, one.payload) for one in await peer.received()] == [(frames.ACK, b"12345678")]


@in_loop
async def test_frames_that_are_not_a_fault() -> None:
    peer = Peer()
    await peer.received()
    owner = peer.open(1)
    owner.stream.send_whole(OK, b"done", STATUS)
    peer.request(3).stream.send_whole(OK, b"done", STATUS)
    peer.send(
        frame(0x50, 0xFF, 77, b"unknown"),
        frame(frames.PRIORITY, 0, 9, bytes(5)),
        frame(frames.GOAWAY, 0, 0, bytes(8)),
        data(1, b"late", frames.END_STREAM),
        window_update(3, 5),
        rst_stream(3, ErrorCode.CANCEL),
    )
    assert [one.kind for one in await peer.received() if one.stream_id == 0] == []
    assert peer.request(11).over


@in_loop
async def test_too_many_streams_are_refused_and_can_come_again() -> None:
    peer = Peer(Limits(max_streams=2))
    first, second = peer.open(1), peer.open(3)
    peer.send(headers(5))
    assert [(one.stream_id, one.number) for one in await peer.answers()] == [(5, ErrorCode.REFUSED_STREAM)]
    second.stream.send_headers(STATUS, end=True)
    assert peer.request(7).over
    assert first.reasons == []


@in_loop
async def test_too_long_headers_have_an_answer_of_the_owners() -> None:
    peer = Peer(Limits(max_header_list=300, too_large=STATUS))
    peer.send(headers(1, frames.END_HEADERS, encode_headers([*REQUEST, (b"x", b"y" * 200)])))
    answer = await peer.answers()
    assert [(one.kind, one.payload) for one in answer] == [(frames.HEADERS, STATUS), (frames.RST_STREAM, bytes(4))]
    peer.send(data(1, b"late", frames.END_STREAM))
    assert peer.request(3).over


# -- hostile peers --


def pings(count: int) -> bytes:
    return frame(frames.PING, 0, 0, bytes(8)) * count


FLOODS: dict[str, Callable[[int], bytes]] = {
    "PING": pings,
    "SETTINGS": lambda count: frame(frames.SETTINGS, 0, 0) * count,
    "SETTINGS with ACK": lambda count: frame(frames.SETTINGS, frames.ACK, 0) * count,
    "PRIORITY": lambda count: frame(frames.PRIORITY, 0, 9, bytes(5)) * count,
    "GOAWAY": lambda count: frame(frames.GOAWAY, 0, 0, bytes(8)) * count,
    "WINDOW_UPDATE": lambda count: window_update(0, 1) * count,
    "WINDOW_UPDATE of a stream": lambda count: window_update(1, 1) * count,
    "empty DATA": lambda count: data(1) * count,
    "empty padded DATA": lambda count: data(1, b"\0", frames.PADDED) * count,
    "unknown": lambda count: frame(0x50, 0, 0) * count,
    "late DATA": lambda count: headers(3, frames.END_HEADERS, STATUS) + data(3) * count,
    "resets": lambda count: b"".join(
        headers(number) + rst_stream(number, ErrorCode.CANCEL) for number in range(3, 2 * count, 2)
    ),
    "requests that are reset here": lambda count: b"".join(
        headers(number) + window_update(number, 0) for number in range(3, 2 * count, 2)
    ),
    "malformed requests": lambda count: b"".join(headers(number, END, STATUS) for number in range(3, 2 * count, 2)),
    "refused requests": lambda count: b"".join(headers(number) for number in range(3, 2 * count, 2)),
}


@pytest.mark.parametrize("name", FLOODS)
@in_loop
async def test_floods(name: str) -> None:
    peer = Peer(Limits(max_streams=10))
    peer.open(1)
    peer.send(FLOODS[name](90))
    assert not peer.transport.ended
    peer = Peer(Limits(max_streams=10))
    peer.open(1)
    peer.send(FLOODS[name](12_000))
    code, text = await peer.goaway()
    assert code == ErrorCode.ENHANCE_YOUR_CALM
    assert text.startswith("Too many ")


@in_loop
async def test_a_client_that_works_may_send_more() -> None:
    peer = Peer()
    for number in range(1, 40_001, 2):
        peer.send(headers(number), window_update(number, 1), window_update(0, 6))
        peer.owners[number].stream.send_whole(OK, b"answer", STATUS)
    assert not peer.transport.ended


@pytest.mark.parametrize("size", [0, 1, 5_000])
@in_loop
async def test_a_block_without_an_end(size: int) -> None:
    peer = Peer()
    peer.send(headers(1, 0))
    for _ in range(40):
        peer.send(frame(frames.CONTINUATION, 0, 1, bytes(size)))
    code, text = await peer.goaway()
    assert code == ErrorCode.ENHANCE_YOUR_CALM
    assert text == "A header block is much longer than a header list may be (16384 bytes): send fewer headers."


@in_loop
async def test_who_makes_us_speak_and_does_not_listen_loses_the_connection() -> None:
    peer = Peer()
    await peer.received()
    peer.protocol.pause_writing()
    peer.send(pings(900))
    await peer.received()  # what a turn of the loop had no time for is read in the next
    assert not peer.transport.aborted
    peer.protocol.resume_writing()
    peer.protocol.pause_writing()
    peer.send(pings(900))
    await peer.received()
    assert not peer.transport.aborted
    peer.send(pings(200))
    await peer.received()
    assert peer.transport.aborted


# -- the answer was complete before the request --


LATE_FAULTS: dict[str, tuple[bytes, ErrorCode]] = {
    "padding": (data(1, b"\x05ab", frames.PADDED), ErrorCode.PROTOCOL_ERROR),
    "DATA behind the end": (data(1, b"a", frames.END_STREAM) + data(1), ErrorCode.STREAM_CLOSED),
    "DATA behind trailers": (headers(1) + data(1), ErrorCode.STREAM_CLOSED),
    "DATA behind RST_STREAM": (rst_stream(1, ErrorCode.CANCEL) + data(1), ErrorCode.STREAM_CLOSED),
    "HEADERS behind RST_STREAM": (rst_stream(1, ErrorCode.CANCEL) + headers(1), ErrorCode.STREAM_CLOSED),
}


@pytest.mark.parametrize("name", LATE_FAULTS)
@in_loop
async def test_faults_behind_an_early_answer(name: str) -> None:
    sent, code = LATE_FAULTS[name]
    peer = Peer()
    peer.open(1).stream.send_headers(OK, end=True)
    peer.send(sent)
    assert (await peer.goaway())[0] == code


@in_loop
async def test_what_comes_behind_an_early_answer_is_dropped() -> None:
    peer = Peer()
    peer.open(1).stream.send_headers(OK, end=True)
    await peer.received()
    peer.send(data(1, b"a"), window_update(1, 5), headers(1, END, b""), window_update(1, 5))
    assert await peer.received() == []
    peer.send(window_update(1, 0))
    assert [(frame.kind, frame.number) for frame in await peer.received()] == [
        (frames.RST_STREAM, ErrorCode.PROTOCOL_ERROR)
    ]


@in_loop
async def test_streams_that_were_reset_are_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "REMEMBERED", 2)
    peer = Peer()
    for number in (1, 3, 5):
        peer.open(number).stream.reset(ErrorCode.CANCEL)
    peer.send(data(3), data(5))
    await peer.received()
    peer.send(data(1))
    assert (await peer.goaway())[0] == ErrorCode.STREAM_CLOSED
