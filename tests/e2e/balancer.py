"""A plain TCP balancer: each connection goes to the next server that takes it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress


class Balancer:
    """`open` counts the connections that each server has now."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._ring = list(addresses)
        self.open: Counter[str] = Counter()
        self.address = ""

    async def serve(self, started: threading.Event, over: asyncio.Event) -> None:
        async with await asyncio.start_server(self._take, "127.0.0.1", 0) as listener:
            host, port = listener.sockets[0].getsockname()
            self.address = f"{host}:{port}"
            started.set()
            await over.wait()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in self._ring:
            address = self._ring.pop(0)
            self._ring.append(address)
            host, _, port = address.rpartition(":")
            with suppress(OSError):
                there = await asyncio.open_connection(host, int(port))
                await self._join(address, (reader, writer), there)
                return
        writer.transport.abort()

    async def _join(self, address: str, *ends: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        (reader, writer), (far_reader, far_writer) = ends
        for one in (writer, far_writer):
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.open[address] += 1
        try:
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
            for one in (writer, far_writer):
                one.close()
        except OSError:
            return
        finally:
            self.open[address] -= 1
            for one in (writer, far_writer):
                if not one.is_closing():
                    one.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The end of one direction is the end of it at the other side, too."""
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    if not writer.is_closing():
        writer.write_eof()


@contextmanager
def balancing(addresses: Sequence[str]) -> Iterator[Balancer]:
    balancer, started, loop = Balancer(addresses), threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(_run(balancer, started, over)))
    thread.start()
    try:
        assert started.wait(60)
        yield balancer
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(60)
        loop.close()


async def _run(balancer: Balancer, started: threading.Event, over: asyncio.Event) -> None:
    await balancer.serve(started, over)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)  # transports that were aborted close their sockets in the loop's next turn
