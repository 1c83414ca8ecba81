"""Clients of a port for agents without its key.

`python -m tests.ray.crowd PORT SILENT SPEAKING ADDRESS…`: so many connections that send nothing, and
so many that say nothing after the TLS handshake, come from the addresses, and come again as soon as they are closed.
It prints a line when each has come once, and at the end of its standard input how many have come in all.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import cycle

import uvloop

from msx_ray.tls import client_context

HERE = "127.0.0.1"
AT_ONCE = 100
"""Connections that are made at the same time."""


class Mute(asyncio.Protocol):
    def __init__(self) -> None:
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


class Crowd:
    def __init__(self, port: int) -> None:
        self._port = port
        self._turn = asyncio.Semaphore(AT_ONCE)
        self.came = 0

    async def comes_again(self, address: str, tls: ssl.SSLContext | None, first: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                with suppress(ConnectionResetError, ConnectionAbortedError, ssl.SSLError):
                    async with self._turn:
                        _, mute = await loop.create_connection(Mute, HERE, self._port, ssl=tls, local_addr=(address, 0))
                    self.came += 1
                    first.set()
                    await mute.lost.wait()
        except ConnectionRefusedError:
            first.set()  # the port is closed


async def main(port: int, silent: int, speaking: int, addresses: list[str]) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # of handshakes that are cut short
    crowd, turns = Crowd(port), cycle(addresses)
    events = [asyncio.Event() for _ in range(silent + speaking)]
    tasks = [
        asyncio.create_task(crowd.comes_again(next(turns), None if number < silent else client_context(), first))
        for number, first in enumerate(events)
    ]
    for first in events:
        await first.wait()
    print("crowded", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(crowd.came, flush=True)
    for task in tasks:
        task.cancel()


@asynccontextmanager
async def crowd(port: int, silent: int, speaking: int, *addresses: str) -> AsyncIterator[None]:
    """It is there, and has come again and again when it has left."""
    command = [sys.executable, "-m", __name__, *map(str, (port, silent, speaking)), *addresses]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"crowded\n"
        yield
        said, _ = await process.communicate(b"")
        assert int(said) > silent + speaking, "some were closed, and came again"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
