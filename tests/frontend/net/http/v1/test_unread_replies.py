"""Clients that do not read their replies: they get no more of them, and are closed."""

from __future__ import annotations

import pytest

from msx_core.replies.reply_buffer import STALL_LIMIT
from tests.frontend.net.http.v1.test_limits import Bench, turns
from tests.loops import run
from tests.net.http.direct_client import request

ASK = request("POST", "/predictions/m", b"hello")
HEALTH = request("GET", "/nothing", b"")


async def answered(bench: Bench) -> None:
    """The reply to ASK is written, and its client takes none of it."""
    await bench.send(ASK)
    (await bench.registry.next_job()).sink.answer(200, "", [], b"x" * 100_000)
    await turns()
    bench.transport.unsent = 90_000
    bench.connection.pause_writing()


def test_a_client_that_takes_nothing_is_closed() -> None:
    async def test() -> None:
        bench = Bench()
        await answered(bench)
        await bench.look(1)
        await bench.look(STALL_LIMIT - 1)
        assert not bench.transport.closed
        bench.transport.unsent = 80_000
        await bench.look(1)
        await bench.look(STALL_LIMIT - 1)
        assert not bench.transport.closed, "it has taken something"
        await bench.look(2)
        assert bench.transport.closed

    run(test())


def test_the_last_reply_of_a_connection_does_not_keep_it() -> None:
    """To close a transport is to wait for what it holds."""

    async def test() -> None:
        bench = Bench()
        bench.transport.close = lambda: None  # type: ignore[method-assign]
        await answered(bench)
        bench.connection.shutdown()
        for _ in range(int(STALL_LIMIT) + 1):
            await bench.look(1)
        assert bench.transport.closed

    run(test())


@pytest.mark.parametrize("further", [ASK, HEALTH, ASK * 3])
def test_requests_behind_unread_replies_wait(further: bytes) -> None:
    async def test() -> None:
        bench = Bench()
        await answered(bench)
        written = len(bench.transport.written)
        await bench.send(further)
        assert bench.registry.idle
        assert len(bench.transport.written) == written
        assert bench.connection.idle_since is None
        bench.transport.unsent = 0
        bench.connection.resume_writing()
        await turns()
        assert not bench.registry.idle or len(bench.transport.written) > written

    run(test())
