"""Timeouts, by a clock of the test's own: `look` is all that knows the time."""

from __future__ import annotations

import pytest

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.limits import Limits
from tests.net.http2.peer import OK, REQUEST, Frame, Peer, in_loop

PONG = frames.frame(frames.PING, frames.ACK, 0, b"are you?")


async def pings(peer: Peer) -> list[Frame]:
    return [frame for frame in await peer.received() if frame.kind == frames.PING]


# -- the beginning --


@pytest.mark.parametrize("sent", [b"", b"PRI *", frames.PREFACE])
@in_loop
async def test_a_client_that_does_not_begin(sent: bytes) -> None:
    peer = Peer(silent=True)
    if sent:
        peer.send(sent)
    peer.look(19)
    assert not peer.transport.aborted
    peer.look(1)
    assert peer.transport.aborted


# -- whether the client is there --


@in_loop
async def test_a_silent_client_is_asked_and_answers() -> None:
    peer = Peer()
    peer.look(1)
    peer.look(59)
    assert await pings(peer) == []
    peer.look(1)
    assert [(ping.flags, ping.payload) for ping in await pings(peer)] == [(0, b"are you?")]
    peer.look(19)
    assert await pings(peer) == [], "it is asked once"
    peer.send(PONG)
    peer.look(60)
    assert await pings(peer) == []
    peer.look(1)
    assert len(await pings(peer)) == 1
    assert not peer.transport.aborted


@in_loop
async def test_a_client_that_does_not_answer_is_gone() -> None:
    peer = Peer()
    owner = peer.request(1)
    peer.look(1)
    peer.look(60)
    peer.look(19)
    assert not peer.transport.aborted
    peer.look(1)
    assert peer.transport.aborted
    peer.protocol.connection_lost(None)
    assert owner.reasons == ["the connection was lost"]


@in_loop
async def test_any_frame_says_that_the_client_is_there() -> None:
    peer = Peer()
    peer.look(1)
    peer.look(60)
    peer.send(frames.window_update(0, 1))
    peer.look(20)
    assert not peer.transport.aborted


@in_loop
async def test_a_server_that_was_stopped_for_a_while_waits_for_the_answer() -> None:
    peer = Peer()
    peer.look(1)
    peer.look(60)
    peer.hold_up(3_600)
    peer.look(1)
    assert not peer.transport.aborted
    peer.look(19)
    assert peer.transport.aborted


@in_loop
async def test_no_time_of_a_client_goes_on_while_the_server_is_held_up() -> None:
    silent, idle, head, body = Peer(silent=True), Peer(Limits(idle_timeout=75, ping_interval=1e9)), Peer(), Peer()
    head.send(frames.frame(frames.HEADERS, 0, 1, head.encoder.encode(REQUEST)))
    body.send(frames.frame(frames.HEADERS, frames.END_HEADERS, 1, body.encoder.encode(REQUEST)))
    for peer in (silent, idle, head, body):
        peer.look(1)
        peer.hold_up(3_600)
        peer.look(8)
        assert not peer.transport.aborted
        assert not peer.transport.ended
    assert [frame.kind for frame in await idle.received() if frame.kind == frames.GOAWAY] == []
    assert body.owners[1].slow == []


# -- connections without streams --


@in_loop
async def test_without_streams_a_connection_ends() -> None:
    peer = Peer(Limits(idle_timeout=75, ping_interval=1e9))
    await peer.received()
    peer.look(74)
    assert await peer.received() == []
    peer.look(1.1)
    assert [frame.kind for frame in await peer.received()] == [frames.GOAWAY, frames.PING]


@in_loop
async def test_a_request_begins_the_time_anew() -> None:
    peer = Peer(Limits(idle_timeout=75, ping_interval=1e9))
    peer.request(1).stream.send_headers(OK, end=True)
    await peer.received()
    peer.look(74)
    since = peer.protocol.idle_since
    peer.request(3).stream.send_headers(OK, end=True)
    await peer.received()
    peer.look(74)
    assert await peer.received() == []
    assert since is not None
    assert (peer.protocol.idle_since or 0) > since
    peer.request(5)
    peer.look(1_000)
    assert peer.protocol.idle_since is None
    assert await peer.received() == [], "it waits for its answer"


@in_loop
async def test_a_connection_without_streams_is_kept_where_no_time_is_set() -> None:
    peer = Peer(Limits(ping_interval=1e9))
    peer.look(10_000)
    assert frames.GOAWAY not in [frame.kind for frame in await peer.received()]


# -- header blocks --


@pytest.mark.parametrize("part", ["frame", "block"])
@in_loop
async def test_headers_that_do_not_end(part: str) -> None:
    peer = Peer()
    block = peer.encoder.encode(REQUEST)
    if part == "block":
        peer.send(frames.frame(frames.HEADERS, 0, 1, block))
    else:
        peer.send(frames.frame(frames.HEADERS, frames.END_HEADERS, 1, block)[:-1])
    peer.look(1)
    peer.look(19)
    assert not peer.transport.ended
    peer.look(1)
    assert await peer.goaway() == (
        ErrorCode.ENHANCE_YOUR_CALM,
        "The headers of stream 1 are not complete after 20 s.",
    )


@in_loop
async def test_each_block_has_its_own_time() -> None:
    peer = Peer()
    for number in range(1, 61, 2):
        peer.send(frames.frame(frames.HEADERS, frames.END_STREAM, number, peer.encoder.encode(REQUEST)))
        peer.look(2)
        peer.send(frames.frame(frames.CONTINUATION, frames.END_HEADERS, number))
    assert len(peer.owners) == 30
    assert not peer.transport.ended


# -- bodies --


def send_for(peer: Peer, seconds: int, data: bytes) -> None:
    for _ in range(seconds):
        if data:
            peer.send(data)
        peer.look(1)


@in_loop
async def test_a_body_that_does_not_come() -> None:
    peer = Peer()
    owner = peer.open(1)
    send_for(peer, 10, b"")
    assert owner.slow == []
    send_for(peer, 2, b"")
    assert owner.slow[-1] == "0 bytes of the request came in 11 s, fewer than 240 a second"


@pytest.mark.parametrize(("size", "slow"), [(230, True), (250, False)])
@in_loop
async def test_a_body_that_comes_slowly(size: int, slow: bool) -> None:
    peer = Peer()
    owner = peer.open(1)
    send_for(peer, 100, frames.frame(frames.DATA, 0, 1, bytes(size)))
    assert bool(owner.slow) == slow


@in_loop
async def test_a_frame_that_is_not_complete_counts() -> None:
    peer = Peer()
    owner = peer.open(1)
    peer.send(frames.head(16_000, frames.DATA, 0, 1))
    send_for(peer, 60, bytes(250))
    assert owner.slow == []
    assert owner.body == b""


@in_loop
async def test_time_in_which_the_client_may_not_send_does_not_count() -> None:
    peer = Peer(Limits(stream_window=65_535))
    owner = peer.open(1)
    peer.send(*(frames.frame(frames.DATA, 0, 1, bytes(size)) for size in (16_384, 16_384, 16_384, 16_383)))
    send_for(peer, 1_000, b"")
    assert owner.slow == []
    owner.stream.consumed(65_535)
    send_for(peer, 300, b"")
    assert owner.slow, "the window was open, and nothing came"


@in_loop
async def test_a_body_that_was_fast_has_time() -> None:
    """As with HTTP/1: it is the average that counts."""
    peer = Peer()
    owner = peer.open(1)
    peer.send(frames.frame(frames.DATA, 0, 1, bytes(16_000)))
    send_for(peer, 66, b"")
    assert owner.slow == []
    send_for(peer, 10, b"")
    assert owner.slow


@in_loop
async def test_no_rate_is_demanded_of_others() -> None:
    peer = Peer()
    waits, answered = peer.request(1), peer.open(3)
    answered.stream.send_headers(OK, end=True)
    send_for(peer, 100, b"")
    any_rate = Peer(Limits(min_body_rate=0))
    unbounded = any_rate.open(1)
    send_for(any_rate, 100, b"")
    assert (waits.slow, answered.slow, unbounded.slow) == ([], [], [])
