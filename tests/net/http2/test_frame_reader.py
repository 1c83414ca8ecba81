"""Many frames at once do not keep the loop."""

from __future__ import annotations

import asyncio

import pytest

from msx_net.connections import turns
from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from tests.net.http2.peer import Peer, in_loop

REQUESTS = 600


def many(peer: Peer, first: int = 1) -> bytes:
    """More bytes than are read before the clock is asked."""
    headers = peer.encoder.encode([(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/p" * 10)])
    numbers = range(first, first + 2 * REQUESTS, 2)
    return b"".join(frames.frame(frames.HEADERS, 5, number, headers) for number in numbers)


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN", -1.0)


@pytest.mark.usefixtures("no_time")
@in_loop
async def test_the_loop_has_its_turn() -> None:
    peer = Peer()
    peer.send(many(peer))
    begun = len(peer.owners)
    assert 0 < begun < REQUESTS
    assert peer.transport.paused, "no more is read meanwhile"
    await asyncio.sleep(0)
    assert len(peer.owners) == begun, "a whole turn is the others'"
    await asyncio.sleep(0)
    assert begun < len(peer.owners) < REQUESTS
    while peer.transport.paused:
        await asyncio.sleep(0)
    assert sorted(peer.owners) == list(range(1, 2 * REQUESTS, 2))


@pytest.mark.usefixtures("no_time")
@in_loop
async def test_what_the_transport_had_already_comes_behind_the_rest() -> None:
    peer = Peer()
    sent = many(peer)
    peer.send(sent[:-5])
    peer.send(sent[-5:])
    peer.send(frames.frame(frames.PING, 0, 0, b"the last"))
    peer.look(1)
    while peer.transport.paused:
        await asyncio.sleep(0)
    assert len(peer.owners) == REQUESTS
    assert [frame.payload for frame in await peer.received()][-1] == b"the last"


@pytest.mark.usefixtures("no_time")
@pytest.mark.parametrize("end", ["lost", "aborted", "fault"])
@in_loop
async def test_the_end_of_a_connection_whose_rest_waits(end: str) -> None:
    peer = Peer()
    peer.send(many(peer))
    if end == "fault":
        peer.send(frames.frame(frames.PING, 0, 1, bytes(8)))
        while not peer.transport.ended:
            await asyncio.sleep(0)
        assert (await peer.goaway())[0] == ErrorCode.PROTOCOL_ERROR
        assert not peer.transport.paused, "the client is read until it closes"
        return
    if end == "aborted":
        peer.protocol.abort()
    peer.protocol.connection_lost(None)
    begun = len(peer.owners)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(peer.owners) == begun


@in_loop
async def test_a_few_frames_are_read_in_one_turn() -> None:
    peer = Peer()
    peer.send(many(peer)[:4_000])
    assert not peer.transport.paused
