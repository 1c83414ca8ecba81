"""One socket to a worker, as messages."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from msx_frontend.workers.local_streams import SocketStream
from msx_protocol import LARGE, PREFIX, Chunk, Dropped, Ping, ProtocolError, ToFrontend, encode_frame
from msx_protocol.channel import Channel
from tests.loops import run

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


class Bench:
    def __init__(self) -> None:
        self.messages: list[tuple[Any, bytes]] = []
        self.closed: list[Exception | None] = []
        self.changed = asyncio.Event()
        self.channel: Channel[Any] = Channel(ToFrontend, self._message, self._closed)

    async def open(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        await SocketStream(ours).connect(self.channel)
        return theirs

    def _message(self, message: Any, body: bytes) -> None:
        self.messages.append((message, body))
        self.changed.set()

    def _closed(self, error: Exception | None) -> None:
        self.closed.append(error)
        self.changed.set()

    async def until(self, condition: Callable[[], Any]) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()


async def send(sock: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(sock, data)


@LOOPS
def test_frames_arrive_as_messages_however_they_are_cut(loop: str) -> None:
    async def test() -> None:
        bench = Bench()
        worker = await bench.open()
        frames = encode_frame(Chunk(1, True, 200), b"x" * 100_000) + encode_frame(Dropped(2))
        for piece in (frames[:3], frames[3:50_000], frames[50_000:]):
            await send(worker, piece)
        await bench.until(lambda: len(bench.messages) == 2)
        assert bench.messages == [(Chunk(1, True, 200), b"x" * 100_000), (Dropped(2), b"")]
        worker.close()
        await bench.until(lambda: bench.closed)
        assert bench.closed == [None]

    run(test(), loop)


@LOOPS
def test_what_is_written_arrives_whole(loop: str) -> None:
    async def test() -> None:
        bench = Bench()
        worker = await bench.open()
        bench.channel.write(b"a" * 500_000, bytearray(b"b"), b"c" * 500_000)
        bench.channel.write(b"d")
        received = b""
        while len(received) < 1_000_002:
            received += await asyncio.get_running_loop().sock_recv(worker, 1 << 16)
        assert received == b"a" * 500_000 + b"b" + b"c" * 500_000 + b"d"
        bench.channel.close()
        worker.close()
        await bench.until(lambda: bench.closed)

    run(test(), loop)


@LOOPS
@pytest.mark.parametrize(
    "nonsense",
    [PREFIX.pack(0xFFFFFFFF, 0), PREFIX.pack(3, 0) + b"\xff\xff\xff", encode_frame(Ping(1))],
)
def test_what_is_not_a_frame_closes_the_channel(loop: str, nonsense: bytes) -> None:
    async def test() -> None:
        bench = Bench()
        worker = await bench.open()
        await send(worker, nonsense)
        await bench.until(lambda: bench.closed)
        (error,) = bench.closed
        assert isinstance(error, ProtocolError)
        while await asyncio.get_running_loop().sock_recv(worker, 1):
            pass  # until the end
        worker.close()
        await asyncio.sleep(0)
        assert len(bench.closed) == 1

    run(test(), loop)


@LOOPS
def test_the_end_is_told_once(loop: str) -> None:
    async def test() -> None:
        bench = Bench()
        worker = await bench.open()
        bench.channel.close()
        bench.channel.close()
        worker.close()
        await bench.until(lambda: bench.closed)
        for _ in range(3):
            await asyncio.sleep(0)
        assert bench.closed == [None]

    run(test(), loop)


@LOOPS
def test_frames_for_a_worker_that_is_gone_are_dropped(loop: str) -> None:
    async def test() -> None:
        bench = Bench()
        bench.channel.write(b"before it is open")
        worker = await bench.open()
        worker.close()
        await bench.until(lambda: bench.closed)
        bench.channel.write(b"after")

    run(test(), loop)


@LOOPS
def test_a_bug_in_the_reader_closes_the_channel(loop: str) -> None:
    async def test() -> None:
        handled: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: handled.append(context))
        bench = Bench()

        def fail(message: Any, body: bytes) -> None:
            raise ZeroDivisionError

        bench.channel = Channel(ToFrontend, fail, bench._closed)
        worker = await bench.open()
        await send(worker, encode_frame(Dropped(1)))
        await bench.until(lambda: bench.closed)
        assert isinstance(bench.closed[0], ZeroDivisionError)
        assert handled
        worker.close()

    run(test(), loop)


@LOOPS
def test_a_large_body_is_not_copied(loop: str) -> None:
    async def test() -> None:
        bench = Bench()
        worker = await bench.open()
        await send(
            worker, encode_frame(Chunk(1, True), b"x" * (LARGE - 1)) + encode_frame(Chunk(2, True), b"x" * LARGE)
        )
        await bench.until(lambda: len(bench.messages) == 2)
        (_, small), (_, large) = bench.messages
        assert (type(small).__name__, type(large).__name__) == ("bytes", "bytearray")
        assert large == b"x" * LARGE
        worker.close()
        await bench.until(lambda: bench.closed)

    run(test(), loop)


@LOOPS
@pytest.mark.parametrize("read", [0, 3, 12, 60_000])
def test_another_reader_goes_on_in_the_middle_of_a_frame(loop: str, read: int) -> None:
    """The connection stays, and what is written meanwhile goes to the next one."""

    async def test() -> None:
        bench, next_one = Bench(), Bench()
        worker = await bench.open()
        frames = encode_frame(Chunk(1, True, 200), b"x" * 100_000) + encode_frame(Dropped(2))
        await send(worker, encode_frame(Dropped(9)) + frames[:read])
        await bench.until(lambda: bench.messages)
        while read and not bench.channel._reader._held and bench.channel._reader._large is None:
            await asyncio.sleep(0)
        bench.channel.hold()
        bench.channel.write(encode_frame(Ping(7)))
        copy, begun = bench.channel.detach()
        next_one.channel.feed(b"".join(begun))
        await SocketStream(copy).connect(next_one.channel)
        await send(worker, frames[sum(map(len, begun)) :])
        await next_one.until(lambda: len(next_one.messages) == 2)
        assert next_one.messages == [(Chunk(1, True, 200), b"x" * 100_000), (Dropped(2), b"")]
        assert bench.closed == []
        other = await bench.open()
        assert await asyncio.get_running_loop().sock_recv(other, 100) == encode_frame(Ping(7))
        assert (bench.channel.is_open, bench.channel.unsent) == (True, 0)
        other.close()
        await bench.until(lambda: bench.closed)
        worker.close()
        await next_one.until(lambda: next_one.closed)

    run(test(), loop)


@LOOPS
def test_writing_goes_on_where_nobody_followed(loop: str) -> None:
    async def test() -> None:
        bench = Bench()
        worker = await bench.open()
        bench.channel.hold()
        bench.channel.write(encode_frame(Ping(1)))
        bench.channel.go_on()
        bench.channel.write(encode_frame(Ping(2)))
        data = await asyncio.get_running_loop().sock_recv(worker, 100)
        data += b"" if len(data) > 12 else await asyncio.get_running_loop().sock_recv(worker, 100)
        assert data == encode_frame(Ping(1)) + encode_frame(Ping(2))
        worker.close()
        await bench.until(lambda: bench.closed)

    run(test(), loop)
