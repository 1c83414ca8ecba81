"""How a connection begins and ends, and that it does not matter in which pieces bytes come."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msx_net.http2 import connection, frames
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.errors import ErrorCode
from msx_net.http2.limits import Limits
from tests.net.http2.peer import OK, REQUEST, STATUS, Owner, Peer, in_loop

HELLO = frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0)


@in_loop
async def test_a_whole_answer_leaves_in_one_write() -> None:
    peer = Peer()
    await peer.received()
    before = peer.transport.writes
    owner = peer.request(1, b"question")
    assert (owner.headers, owner.body, owner.over) == (REQUEST, b"question", True)
    owner.stream.send_whole(OK, b"answer", STATUS)
    assert owner.stream.finished
    assert [(frame.kind, frame.flags, frame.payload) for frame in await peer.answers()] == [
        (frames.HEADERS, frames.END_HEADERS, OK),
        (frames.DATA, 0, b"answer"),
        (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, STATUS),
    ]
    assert peer.transport.writes == before + 1


@in_loop
async def test_answers_of_one_turn_leave_together() -> None:
    peer = Peer()
    await peer.received()
    before = peer.transport.writes
    for number in (1, 3, 5):
        peer.request(number).stream.send_whole(OK, b"answer", STATUS)
    assert len(await peer.answers()) == 9
    assert peer.transport.writes == before + 1


def conversation(peer: Peer) -> bytes:
    """Bytes of a client, with all kinds of frames."""
    block = [peer.encoder.encode([*REQUEST, (b"x", b"%d" % number)]) for number in range(3)]
    return b"".join(
        [
            HELLO,
            frames.frame(frames.HEADERS, frames.END_HEADERS, 1, block[0]),
            frames.frame(frames.DATA, 0, 1, b"some"),
            frames.header_frames(3, block[1], end=False, max_size=10),
            frames.frame(frames.PING, 0, 0, b"12345678"),
            frames.frame(frames.DATA, frames.PADDED, 3, b"\x03other" + bytes(3)),
            frames.frame(0x77, 0, 0, b"unknown"),
            frames.frame(frames.DATA, frames.END_STREAM, 1, b"body" * 1_000),
            frames.header_frames(5, block[2], end=True, max_size=100),
            frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 3, STATUS),
        ]
    )


@settings(max_examples=60)
@given(st.lists(st.integers(1, 200), min_size=1))
@in_loop
async def test_any_split_of_the_bytes_is_the_same(sizes: list[int]) -> None:
    peer = Peer(silent=True)
    data, start, turn = conversation(peer), 0, 0
    while start < len(data):
        size = sizes[turn % len(sizes)]
        peer.send(data[start : start + size])
        start, turn = start + size, turn + 1
    bodies = {number: (owner.headers[-1][1], owner.body, owner.over) for number, owner in peer.owners.items()}
    assert bodies == {
        1: (b"0", b"some" + b"body" * 1_000, True),
        3: (b"1", b"other", True),
        5: (b"2", b"", True),
    }
    pongs = [frame for frame in await peer.received() if frame.kind == frames.PING]
    assert [frame.payload for frame in pongs] == [b"12345678"]


FRAMES = st.builds(
    frames.frame,
    st.integers(0, 11),
    st.sampled_from([0, 1, 4, 5, 8, 13, 0x24, 0xFF]),
    st.sampled_from([0, 1, 1, 3, 3, 5, 7, 8]),
    st.one_of(st.just(b"\x83\x86\x84"), st.just(b"\0\0\0\1"), st.binary(max_size=20), st.just(bytes(8))),
)


class Answering(Peer):
    """Answers each request, or resets it."""

    def accept(self, *args: object) -> Owner:
        owner = super().accept(*args)  # type: ignore[arg-type]
        if owner.stream.id % 3 == 0:
            owner.stream.send_whole(OK, bytes(100), STATUS)
        elif owner.stream.id % 5 == 0:
            owner.stream.reset(ErrorCode.CANCEL)
        else:
            owner.stream.send_headers(OK)
            owner.stream.send_data(bytes(70_000))
        return owner


@settings(max_examples=300)
@given(st.lists(FRAMES, max_size=30))
@in_loop
async def test_no_frames_break_it(sent: list[bytes]) -> None:
    peer = Answering()
    peer.send(*sent)
    for frame in sent:
        peer.send(frame)
    await peer.received()
    peer.protocol.pause_writing()
    peer.protocol.resume_writing()
    peer.protocol.connection_lost(None)
    assert peer.protocol.streams == 0
    assert peer.protocol._streams.flow.held == 0
    assert all(len(owner.reasons) <= 1 for owner in peer.owners.values())


# -- the beginning --


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"P", b"OPTIONS * HTTP/1.1\r\n", b"POST", b"PRI * HTTP/1"])
@in_loop
async def test_an_http1_client_is_told_where_it_is(sent: bytes) -> None:
    peer = Peer(silent=True)
    peer.send(sent)
    if sent == b"P":
        assert not peer.transport.ended, "it may become the preface"
        peer.send(b"UT /x HTTP/1.1\r\n")
    await asyncio.sleep(0)
    assert bytes(peer.transport.written).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"This port speaks HTTP/2 only, as gRPC clients do" in peer.transport.written
    assert peer.transport.ended


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01", b"get / http", b"\0" * 100, b"INVALID PREFACE\r\n"])
@in_loop
async def test_a_stranger_is_not_answered(sent: bytes) -> None:
    peer = Peer(silent=True)
    peer.send(sent)
    await asyncio.sleep(0)
    assert peer.transport.ended
    assert peer.transport.written == b""


@in_loop
async def test_settings_come_first() -> None:
    for first in (frames.frame(frames.PING, 0, 0, bytes(8)), frames.frame(0x77, 0, 0)):
        peer = Peer(silent=True)
        peer.send(frames.PREFACE, first)
        assert await peer.goaway() == (ErrorCode.PROTOCOL_ERROR, "SETTINGS has to be the first frame.")
    peer = Peer(silent=True)
    peer.send(frames.PREFACE, frames.frame(frames.SETTINGS, frames.ACK, 0))
    assert await peer.goaway() == (ErrorCode.PROTOCOL_ERROR, "The first SETTINGS of a client is not an ACK.")


@in_loop
async def test_a_window_that_is_large_enough_does_not_grow() -> None:
    peer = Peer(Limits(connection_window=65_535))
    assert [frame.kind for frame in await peer.received()] == [frames.SETTINGS, frames.SETTINGS]


# -- the end --


async def goaways(peer: Peer) -> list[tuple[int, ErrorCode]]:
    return [
        (frame.number, ErrorCode(int.from_bytes(frame.payload[4:8], "big")))
        for frame in await peer.received()
        if frame.kind == frames.GOAWAY
    ]


@in_loop
async def test_a_graceful_end() -> None:
    peer = Peer()
    await peer.received()
    owner = peer.request(1)
    peer.protocol.shutdown()
    first = await peer.received()
    assert [frame.kind for frame in first] == [frames.GOAWAY, frames.PING]
    assert first[0].number == frames.LARGEST_ID
    assert peer.request(3).over, "the client did not know yet"
    peer.send(frames.frame(frames.PING, frames.ACK, 0, first[1].payload))
    assert await goaways(peer) == [(3, ErrorCode.NO_ERROR)]
    peer.send(frames.frame(frames.HEADERS, 5, 5, peer.encoder.encode(REQUEST)))
    assert 5 not in peer.owners
    assert [frame.number for frame in await peer.answers()] == [ErrorCode.REFUSED_STREAM]
    owner.stream.send_whole(OK, b"answer", STATUS)
    assert not peer.transport.ended
    peer.owners[3].stream.send_whole(OK, b"answer", STATUS)
    assert len(await peer.answers()) == 6, "the last answer leaves before the end"
    assert peer.transport.ended
    assert (owner.reasons, peer.transport.aborted) == ([], False)


@in_loop
async def test_an_idle_connection_ends_once_the_client_knows() -> None:
    peer = Peer()
    peer.protocol.shutdown()
    peer.protocol.shutdown()
    assert not peer.transport.ended
    pings = [frame for frame in await peer.received() if frame.kind == frames.PING]
    peer.send(frames.frame(frames.PING, frames.ACK, 0, bytes(8)))
    assert not peer.transport.ended
    peer.send(*(frames.frame(frames.PING, frames.ACK, 0, ping.payload) for ping in pings))
    assert peer.transport.ended
    assert len(pings) == 1


@in_loop
async def test_a_connection_that_has_not_begun_ends_at_once() -> None:
    peer = Peer(silent=True)
    peer.protocol.shutdown()
    assert not peer.transport.ended, "its first bytes may be on their way"
    peer.protocol.shutdown(0)
    assert peer.transport.ended
    assert peer.transport.written == b""


@in_loop
async def test_a_client_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ROUND_TRIP", 0.001)
    monkeypatch.setattr(connection, "LINGER", 0.001)
    peer = Peer()
    peer.protocol.shutdown()
    while not peer.transport.aborted:
        await asyncio.sleep(0.001)
    assert peer.transport.ended


@in_loop
async def test_an_old_connection_ends() -> None:
    peer = Peer(Limits(max_age=0.001))
    while not await goaways(peer):
        await asyncio.sleep(0.001)
    assert not peer.transport.closed


@in_loop
async def test_what_an_old_connection_has_under_way_has_a_time_too() -> None:
    peer = Peer(Limits(max_age=0.001, max_age_grace=0.001))
    owner = peer.request(1)
    while not peer.transport.aborted:
        await asyncio.sleep(0.001)
    peer.protocol.connection_lost(None)
    assert owner.reasons == ["the connection was lost"]


@in_loop
async def test_a_client_that_takes_nothing_of_an_answer() -> None:
    peer = Peer()
    owner = peer.request(1)
    owner.stream.send_data(bytes(70_000))
    peer.look(29)
    assert owner.reasons == []
    peer.look(2)
    assert owner.reasons == ["the client took nothing of its answer for 30 s"]
    last = (await peer.answers())[-1]
    assert (last.kind, last.number) == (frames.RST_STREAM, ErrorCode.CANCEL)
    peer.protocol.pause_writing()
    peer.look(62)
    assert peer.transport.aborted


@in_loop
async def test_timers_end_with_the_connection() -> None:
    peer = Peer(Limits(max_age=0.002, max_age_grace=0.001), silent=True)
    peer.protocol.pause_writing()
    peer.protocol.connection_lost(None)
    await asyncio.sleep(0.01)
    assert not peer.transport.aborted
    assert isinstance(peer.lost[0], Http2Protocol)
