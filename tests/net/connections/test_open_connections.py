"""The limit over all listeners: the longest idle end, accepting goes on when there is room, and the sweep."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from msx_net.connections import sweep
from msx_net.connections.connection import forgiven
from msx_net.connections.descriptors import Descriptors, RaisedLimit
from msx_net.connections.open_connections import ListenerConnections, OpenConnections
from tests.loops import run
from tests.net.connections.echoing import Accepting, Echoing, accepting

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
MANY = Descriptors(20_000)


async def is_open(server: Accepting, count: int) -> None:
    while len(server.connections) != count:
        await asyncio.sleep(0.001)


@LOOPS
def test_at_the_limit_the_longest_idle_end(loop: str, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        of_server = OpenConnections(MANY, 3)
        async with accepting(of_server=of_server) as first, accepting(of_server=of_server) as other:
            clients = [await first.connect()]
            await is_open(first, 1)
            await asyncio.sleep(0.005)  # uvloop's clock has milliseconds
            for _ in range(2):
                clients.append(await other.connect())
            await is_open(other, 2)
            assert await other.ask(b"x", 6) == b"echo x"
            assert await clients[0][0].read() == b"", "the first of all, on the other listener"
            assert of_server.shed == 1
            assert len(other.connections) <= 3
            for _, writer in clients:
                writer.close()

    run(test(), loop)
    assert "3 are open, and the server may have 3 (max_connections)" in caplog.text


@LOOPS
def test_where_none_is_idle_accepting_waits(loop: str) -> None:
    async def test() -> None:
        of_server = OpenConnections(MANY, 2)
        async with accepting(of_server=of_server) as server:
            busy = [await server.connect() for _ in range(2)]
            await is_open(server, 2)
            for connection in server.connections:
                assert isinstance(connection, Echoing)
                connection.idle_since = None
            waiting = [asyncio.create_task(server.ask(b"x", 6)) for _ in range(5)]
            await asyncio.sleep(0.15)  # longer than it takes to look again
            assert not any(task.done() for task in waiting)
            assert len(server.connections) == 2
            busy[0][1].close()
            assert await asyncio.gather(*waiting) == [b"echo x"] * 5
            busy[1][1].close()

    run(test(), loop)


@LOOPS
def test_one_that_was_idle_and_does_not_end_is_aborted(loop: str) -> None:
    class Stubborn(Echoing):
        def shutdown(self, on_its_way: float = 0.5) -> None: ...

    async def test() -> None:
        of_server = OpenConnections(MANY, 1)
        async with accepting(of_server=of_server, connect=lambda connections: Stubborn(b"echo", connections)) as server:
            _, writer = await server.connect()
            await is_open(server, 1)
            assert await server.ask(b"x", 6) == b"echo x"
            writer.close()

    run(test(), loop)


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    """The limit: 40 more than the highest that is in use; those below it are all in use."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as opened:
        highest = max(map(int, os.listdir("/proc/self/fd")))
        lowest = 0
        while lowest <= highest:  # tests before this one left gaps and open ones above them
            lowest = os.open(os.devnull, os.O_RDONLY)
            opened.callback(os.close, lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 40, before[1]))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        yield lowest + 40


async def ask_when_there_is_room(server: Accepting) -> bytes:
    """The closing ends of this process give their descriptors back in turns of the loop."""
    while True:
        try:
            return await server.ask(b"x", 6)
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
            await asyncio.sleep(0.001)


@LOOPS
def test_without_descriptors_accepting_recovers(loop: str, few_descriptors: int) -> None:
    """Clients take all that there are, and leave: with a server of uvloop's nobody could connect any more."""

    async def test() -> None:
        async with accepting(of_server=OpenConnections(Descriptors(1 << 20))) as server:
            clients = []
            with contextlib.suppress(OSError):  # too many open files, of this process
                while True:
                    clients.append(await server.connect())
            await asyncio.sleep(0.15)
            for _, writer in clients:
                writer.transport.abort()
            assert await ask_when_there_is_room(server) == b"echo x"

    run(test(), loop)


@LOOPS
def test_the_last_descriptors_are_not_for_connections(loop: str, few_descriptors: int) -> None:
    async def test() -> None:
        of_server = OpenConnections(Descriptors(1 << 20))
        of_server._most_descriptors = few_descriptors - 15
        async with accepting(of_server=of_server) as server:
            clients = []
            for _ in range(8):
                clients.append(await server.connect())
                await asyncio.sleep(0.002)
            await asyncio.sleep(0.3)
            with ExitStack() as opened:
                for _ in range(6):
                    opened.callback(os.close, os.dup(0))
            for _, writer in clients:
                writer.transport.abort()
            assert await server.ask(b"x", 6) == b"echo x"

    run(test(), loop)


@pytest.mark.parametrize(
    ("limit", "reserve", "connections"),
    [(32, 16, 16), (256, 128, 128), (1024, 128, 896), (20_000, 1024, 18_976), (1 << 20, 1024, 1 << 16)],
)
def test_the_reserve(limit: int, reserve: int, connections: int) -> None:
    found = Descriptors(limit)
    assert found.reserve == reserve
    assert OpenConnections(found).limit == connections
    assert OpenConnections(found, 5).limit == 5
    assert OpenConnections(found, 1 << 30).limit == limit - reserve


def test_the_soft_limit_is_raised_until_the_end() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1000), hard))
    try:
        raised = RaisedLimit()
        assert raised.inherited == min(soft, 1000)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        raised.close()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(soft, 1000), hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Looked(Echoing):
    def __init__(self, connections: ListenerConnections) -> None:
        super().__init__(b"", connections)
        self.looks = 0

    def look(self, now: float) -> None:
        self.looks += 1
        raise ZeroDivisionError


def test_the_sweep_looks_at_all_while_there_are_any(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sweep, "EVERY", 0.01)
    monkeypatch.setattr(sweep, "AT_ONCE", 3)
    caplog.set_level(logging.CRITICAL, "msx.connections")

    async def test() -> None:
        connections = ListenerConnections(OpenConnections(MANY))
        looked = [Looked(connections) for _ in range(10)]
        for one in looked:
            connections.add(one)
        while any(one.looks < 2 for one in looked):
            await asyncio.sleep(0.001)
        for one in looked:
            connections.discard(one)
        while connections.of_server._sweep._running:  # a server without connections does nothing
            await asyncio.sleep(0.001)

    run(test())


class Judged(Echoing):
    """Tells what it was told, and what it had read by then."""

    def __init__(self, connections: ListenerConnections) -> None:
        super().__init__(b"", connections)
        self.events: list[tuple[str, float]] = []
        self.read = b""
        self.looked = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.read += data

    def forgive(self, seconds: float, now: float) -> None:
        self.events.append(("forgive", seconds))

    def look(self, now: float) -> None:
        self.events.append(("look", len(self.read)))
        self.looked.set()


@LOOPS
def test_what_stands_in_a_socket_is_read_before_its_connection_is_judged(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "EVERY", 0.01)

    async def test() -> None:
        connections = ListenerConnections(OpenConnections(MANY))
        ours, theirs = socket.socketpair()
        with theirs:
            judged = Judged(connections)
            await asyncio.get_running_loop().create_connection(lambda: judged, sock=ours)
            await judged.looked.wait()
            judged.looked.clear()
            judged.events.clear()
            theirs.send(b"abc")
            of_server = connections.of_server._sweep
            while asyncio.get_running_loop().time() < of_server._due:
                pass  # the loop is held up, as by a handler of signals
            await judged.looked.wait()
            assert judged.events[0] == ("look", 3)
            judged.abort()
            await connections.until_empty(5)

    run(test(), loop)


def test_a_look_that_is_late_forgives_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "EVERY", 0.01)

    async def test() -> None:
        connections = ListenerConnections(OpenConnections(MANY))
        judged = Judged(connections)
        connections.add(judged)
        connections.of_server._sweep._due -= 25
        await judged.looked.wait()
        (told, seconds), (then, _) = judged.events
        assert (told, then) == ("forgive", "look")
        assert 25 <= seconds < 35
        judged.looked.clear()
        judged.events.clear()
        await judged.looked.wait()
        connections.discard(judged)
        assert judged.events == [("look", 0)], "once"

    run(test())


@pytest.mark.parametrize(
    ("since", "seconds", "now", "from_then_on"), [(100.0, 25.0, 130.0, 125.0), (120.0, 25.0, 130.0, 130.0)]
)
def test_no_time_that_is_forgiven_is_still_to_come(
    since: float, seconds: float, now: float, from_then_on: float
) -> None:
    assert forgiven(since, seconds, now) == from_then_on
