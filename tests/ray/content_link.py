"""A server's contents on loopback, over connections that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from msx_ray.agent.fetching import Streams
from msx_ray.content_source import ALIVE, ContentSource, Offered


class Link:
    """`cuts`: after how many bytes of answers each connection breaks; then they hold."""

    def __init__(self, port: int, cuts: Iterator[int]) -> None:
        self._port, self._cuts = port, cuts
        self.dialled = 0

    async def dial(self) -> Streams:
        self.dialled += 1
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        limit = next(self._cuts, None)
        if limit is None:
            return reader, writer
        cut = asyncio.StreamReader()
        task = asyncio.create_task(_pour(reader, cut, limit))
        writer.transport.task = task  # type: ignore[attr-defined]  # as long as the connection
        return cut, writer


async def _pour(source: asyncio.StreamReader, into: asyncio.StreamReader, limit: int) -> None:
    while limit > 0 and (data := await source.read(min(limit, 1 << 16))):
        into.feed_data(data)
        limit -= len(data)
    into.feed_eof()


@asynccontextmanager
async def served(*offered: Offered, cuts: Iterator[int] | None = None, alive: float = ALIVE) -> AsyncIterator[Link]:
    source = ContentSource(offered, alive=alive)
    tasks = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(source.serve(reader, writer))
        tasks.add(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield Link(server.sockets[0].getsockname()[1], cuts or iter(()))
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def make_model(folder: Path, size: int = 3_000_000) -> Path:
    for path, data in {
        "handler.py": b"x = 1\n",
        "weights/a.ckpt": bytes(range(256)) * (size // 256),
        "empty": b"",
    }.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (folder / "handler.py").chmod(0o755)
    return folder
