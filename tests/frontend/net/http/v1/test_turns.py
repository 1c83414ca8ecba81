"""A connection that sends much to parse does not keep the loop, and nothing of it is lost or overtaken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from msx_net.connections import turns
from msx_net.http.v1.reader import LARGEST_PIECE, SMALL_PIECE
from msx_net.http.wire import Receive, Scope, Send, send_whole
from tests.frontend.net.http.v1.test_limits import CHUNKED, LIMITS, Bench
from tests.loops import run
from tests.net.http.direct_client import connect, request

TINY = b"1\r\na\r\n"
END = b"0\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn is over when one piece was read."""
    monkeypatch.setattr(turns, "TURN", -1.0)


def received(bench: Bench) -> int:
    answering = bench.connection._answering
    return 0 if answering is None else answering.size


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0)


@pytest.mark.usefixtures("no_time")
def test_small_chunks_are_read_in_small_pieces() -> None:
    async def test() -> None:
        bench = Bench()
        bench.connection.data_received(CHUNKED + TINY * 5000 + END)
        assert 0 < received(bench) <= LARGEST_PIECE // len(TINY)
        assert bench.transport.paused, "no more is read meanwhile"
        while bench.transport.paused:
            before = received(bench)
            await asyncio.sleep(0)
            assert received(bench) - before <= SMALL_PIECE // len(TINY) + 1
        assert (await bench.registry.next_job()).fields[0].data == b"a" * 5000

    run(test())


@pytest.mark.usefixtures("no_time")
def test_others_have_a_whole_turn_between_two_pieces() -> None:
    async def test() -> None:
        bench = Bench()
        bench.connection.data_received(CHUNKED + TINY * 5000 + END)
        begun = received(bench)
        await asyncio.sleep(0)
        assert received(bench) == begun
        await asyncio.sleep(0)
        assert received(bench) > begun

    run(test())


def test_a_hundred_thousand_chunks_of_twenty_bytes_are_a_body() -> None:
    async def test() -> None:
        bench = Bench(limit=2_000_000)
        chunk = b"14\r\n%b\r\n" % (b"a" * 20)
        bench.connection.data_received(CHUNKED + chunk * 100_000 + END)
        assert len((await bench.registry.next_job()).fields[0].data) == 2_000_000

    run(test())


@pytest.mark.usefixtures("no_time")
def test_what_the_transport_had_already_comes_behind_the_rest() -> None:
    async def test() -> None:
        bench = Bench()
        bench.connection.data_received(CHUNKED + TINY * 2000)
        bench.connection.data_received(b"1\r\nb\r\n" + END)
        bench.connection.data_received(request("POST", "/predictions/m", b"next"))
        for body in (b"a" * 2000 + b"b", b"next"):
            job = await bench.registry.next_job()
            assert job.fields[0].data == body
            job.answer(200, "", [], b"")
        await until(lambda: bench.transport.written.count(b"HTTP/1.1 200 ") == 2)
        assert not bench.transport.paused

    run(test())


@pytest.mark.usefixtures("no_time")
def test_many_requests_at_once_are_answered_in_their_order() -> None:
    async def test() -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send_whole(send, 200, [], scope["path"].encode())

        connection, transport = connect(app, None, LIMITS)
        connection.data_received(b"".join(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % number for number in range(1000)))
        assert connection._reader.begun <= LARGEST_PIECE // len(GET)
        await until(lambda: transport.written.endswith(b"/999"))
        replies = bytes(transport.written).split(b"HTTP/1.1 200 OK\r\n")[1:]
        assert [int(reply.rpartition(b"/")[2]) for reply in replies] == list(range(1000))
        assert not transport.paused

    run(test())


@pytest.mark.usefixtures("no_time")
def test_a_body_that_the_app_does_not_take_is_not_read_on_behind_the_pieces() -> None:
    async def test() -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await asyncio.Event().wait()

        connection, transport = connect(app, None, LIMITS)
        connection.data_received(CHUNKED + b"400\r\n%b\r\n" % bytes(1024) * 100)
        await until(lambda: not connection.flow.held_back)
        assert connection.flow.read_paused
        assert transport.paused
        connection.connection_lost(None)

    run(test())


@pytest.mark.usefixtures("no_time")
@pytest.mark.parametrize("end", ["lost", "aborted", "refused"])
def test_the_end_of_a_connection_whose_rest_waits(end: str) -> None:
    async def test() -> None:
        bench = Bench(limit=1000)
        bench.connection.data_received(CHUNKED + TINY * 5000 + b"no chunk")
        if end == "refused":
            await until(lambda: bench.over)
            assert bench.status == 413
            await until(lambda: not bench.connection.flow.held_back)
            assert not bench.transport.paused, "the client is read until it closes"
            return
        if end == "aborted":
            bench.connection.abort()
        bench.connection.connection_lost(None)
        begun = received(bench)
        for _ in range(4):
            await asyncio.sleep(0)
        assert received(bench) == begun
        assert bench.registry.idle

    run(test())


@pytest.mark.usefixtures("no_time")
def test_a_client_whose_bytes_wait_is_neither_slow_nor_idle() -> None:
    async def test() -> None:
        bench = Bench()
        bench.connection.data_received(CHUNKED + TINY * 1000)
        for _ in range(10):
            bench.now += 1000
            bench.connection.look(bench.now)
        assert not bench.over
        assert bench.connection.idle_since is None
        bench.connection.connection_lost(None)

    run(test())
