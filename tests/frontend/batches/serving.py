"""A server that runs batches, with a model that answers by a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from msx_frontend.batches.book import BatchBook
from msx_frontend.batches.rooms import LineTurns, ModelRoom
from msx_frontend.batches.runner import Batches
from msx_frontend.files.shelf import FileShelf, ShelfLimits
from msx_frontend.store.store import Store
from tests.frontend.generation.speaker import Speaker
from tests.net.http.client import Exchange

PATH = "/v1/completions"
BOUNDARY = "b0undary"
LIMITS = ShelfLimits(largest=20_000, most=20, size=50_000, days=30)


@dataclass
class FakeRoom:
    """The room of the only model."""

    places: int = 8
    taken: int = 0
    is_wanted: bool = False
    is_held: bool = False
    answered: float = 0.0

    def __call__(self, names: Mapping[str, str], model: str) -> ModelRoom:
        return ModelRoom("m", self.places, self.taken, self.is_wanted, self.is_held, self.answered)


def row(custom_id: str, body: Any = None, url: str = PATH, **more: Any) -> dict[str, Any]:
    asked = {"prompt": "hi"} if body is None else body
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": asked, **more}


def jsonl(*values: Any) -> bytes:
    return b"".join(msgspec.json.encode(one) + b"\n" for one in values)


def form(content: bytes | None, filename: str = "in.jsonl", **fields: str) -> bytes:
    """The body of an upload: `expires_after[seconds]` and the like are fields, too."""
    parts = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in fields.items()]
    body = "".join(parts).encode()
    if content is not None:
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n\r\n'
        body += head.encode() + content + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


class Served:
    def __init__(self, speaker: Speaker, batches: Batches, room: FakeRoom, store: Store) -> None:
        self.speaker, self.batches, self.room, self.store = speaker, batches, room, store
        self.shelf = batches.shelf

    async def send(self, body: bytes, **headers: str) -> Exchange:
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        return await self.speaker.begin("/v1/files", body, **{"content_type": kind, **headers}).finish()

    async def upload(self, content: bytes, **headers: str) -> str:
        """The id of the file."""
        exchange = await self.send(form(content, purpose="batch"), **headers)
        assert exchange.status == 200, exchange.body
        return str(exchange.json["id"])

    async def get(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> Exchange:
        return await self.speaker.ask(f"/v1/{path}", body, method, **headers)

    async def create(self, file: str, endpoint: str = PATH, status: int = 200, **more: Any) -> Any:
        """The batch; the error where it is refused."""
        asked = {"input_file_id": file, "endpoint": endpoint, "completion_window": "24h", **more}
        exchange = await self.get("batches", "POST", asked)
        assert exchange.status == status, exchange.body
        return exchange.json if status == 200 else exchange.json["error"]

    async def begun(self, *rows: Any, **more: Any) -> str:
        """The id of a batch with these lines."""
        return str((await self.create(await self.upload(jsonl(*rows)), **more))["id"])

    async def show(self, id: str) -> Any:
        return (await self.get(f"batches/{id}")).json

    async def ended(self, id: str) -> Any:
        """The batch when all have ended."""
        while self.batches._active:
            await asyncio.wait(self.batches._tasks._stopped, return_when=asyncio.FIRST_COMPLETED)
        return await self.show(id)

    async def rows(self, file: str | None) -> list[Any]:
        """The lines of a file, in the order of their ids."""
        if file is None:
            return []
        exchange = await self.speaker.begin(f"/v1/files/{file}/content", None, "GET").finish()
        assert exchange.status == 200, exchange.body
        found = [msgspec.json.decode(line) for line in exchange.body.splitlines()]
        return sorted(found, key=lambda one: str(one["custom_id"]))


@asynccontextmanager
async def serving(
    folder: Path,
    *script: Any,
    begins: bool = True,
    limits: ShelfLimits = LIMITS,
    lines: int = 100,
    longest: int = 2000,
    most: int = 10,
    key_of: Any = lambda owner: None,
    **more: Any,
) -> AsyncIterator[Served]:
    store, room = Store(folder / "store.db"), FakeRoom()
    book, shelf = BatchBook(store, most, 30), FileShelf(store, folder / "files", limits)
    batches = Batches(book, shelf, LineTurns(room, 0.5), key_of, lines=lines, longest=longest, limit=10_000)
    speaker = Speaker(list(script), batches_of=batches, **more)
    await batches.load()
    if begins:
        batches.begin(speaker.app.direct())
    try:
        yield Served(speaker, batches, room, store)
    finally:
        await batches.close()
        store.close()
