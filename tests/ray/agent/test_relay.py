"""Bytes pass from one connection to the other, in order, and no more of them wait than the slower side allows."""

from __future__ import annotations

import asyncio
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msx_ray.agent.relay import Relay

pytestmark = pytest.mark.hypothesis


async def relayed(relays: tuple[Relay, Relay]) -> tuple[socket.socket, socket.socket]:
    """The outer ends."""
    loop, ends = asyncio.get_running_loop(), []
    for relay in relays:
        inner, outer = socket.socketpair()
        outer.setblocking(False)
        await loop.create_unix_connection(lambda relay=relay: relay, sock=inner)  # type: ignore[misc]
        ends.append(outer)
    return ends[0], ends[1]


@settings(max_examples=30)
@given(st.lists(st.binary(min_size=1, max_size=200_000), max_size=6))
def test_all_bytes_arrive_in_order(pieces: list[bytes]) -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        near, far = await relayed(Relay.pair())
        sent, got = asyncio.create_task(send(near, pieces)), b""
        while len(got) < sum(map(len, pieces)):
            got += await loop.sock_recv(far, 1 << 16)
        await sent
        assert got == b"".join(pieces)
        await closed(near, far)

    asyncio.run(test())


async def send(end: socket.socket, pieces: list[bytes]) -> None:
    for piece in pieces:
        await asyncio.get_running_loop().sock_sendall(end, piece)


async def closed(*ends: socket.socket) -> None:
    for end in ends:
        end.close()
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("first", [0, 1])
def test_the_end_of_one_is_the_end_of_the_other_after_what_was_sent(first: int) -> None:
    async def test() -> None:
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        ends = await relayed(Relay.pair(told.set))
        await loop.sock_sendall(ends[first], b"last words")
        ends[first].close()
        assert await loop.sock_recv(ends[1 - first], 100) == b"last words"
        assert await loop.sock_recv(ends[1 - first], 100) == b""
        await asyncio.wait_for(told.wait(), 60)
        await closed(ends[1 - first])

    asyncio.run(test())


def test_a_side_that_does_not_read_stops_the_other_one() -> None:
    async def test() -> None:
        near, far = await relayed(Relay.pair())
        sent = 0
        while True:
            await asyncio.sleep(0.002)
            try:
                sent += near.send(bytes(1 << 16))
            except BlockingIOError:
                await asyncio.sleep(0.05)
                try:
                    sent += near.send(b"x")
                except BlockingIOError:
                    break
            assert sent < 64 << 20, "it takes all"
        await closed(near, far)

    asyncio.run(test())
