"""A client of an ASGI app without a network."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.types import ASGIApp

from msx_net.http.exchange import Exchange as Served
from msx_net.http.wire import Message, Scope
from msx_net.logged_calls import Entry

RawHeaders = list[tuple[bytes, bytes]]


def scope(method: str, target: str, headers: RawHeaders | None = None) -> Scope:
    """As a connection makes it."""
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers or [],
        "client": ("10.0.0.1", 4711),
        "server": ("127.0.0.1", 8080),
    }


@dataclass
class Exchange:
    """One request and its reply, as far as it has come."""

    status: int = 0
    reason: bytes = b""
    """The phrase of the status line, where it is not the usual one."""
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)
    ended: bool = False
    asked: int = 0
    """How often the app asked for a message."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _incoming: asyncio.Queue[Message] = field(default_factory=asyncio.Queue)
    _task: asyncio.Task[None] | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    def send_body(self, data: bytes, *, more: bool = False) -> None:
        self._incoming.put_nowait({"type": "http.request", "body": data, "more_body": more})

    def leave(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def receive(self) -> Message:
        self.asked += 1
        return await self._incoming.get()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            assert not self.status, "a second start"
            names = [name for name, _ in message["headers"]]
            assert len(set(names)) == len(names), f"a header twice: {names}"
            assert all(name == name.lower() for name in names)
            self.status, self.reason = message["status"], message.get("reason", b"")
            self.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            assert self.status, "a body before its start"
            assert not self.ended, "more after the end"
            self.chunks += [message["body"]] if message.get("body") else []
            self.ended = not message.get("more_body")
        self.arrived.set()

    def start(self, app: ASGIApp, request: Scope) -> None:
        self._task = asyncio.ensure_future(app(request, self.receive, self.send))

    def read(self) -> None:
        """Take what has come."""

    async def until_chunks(self, count: int) -> None:
        while len(self.chunks) < count:
            self.arrived.clear()
            await self.arrived.wait()

    async def finish(self) -> Exchange:
        """Raises what the app raises."""
        assert self._task is not None
        await self._task
        assert self.ended or not self.status
        return self


def begin(app: ASGIApp, method: str, target: str, body: bytes | None = b"", **headers: str) -> Exchange:
    """Send a request; `body` None sends none yet. A listener's exchange is asked over a connection, as clients do."""
    if isinstance(app, Served):
        from tests.net.http.direct_client import begin_direct

        return begin_direct(app, method, target, body, **headers)
    exchange = Exchange()
    if body is not None:
        exchange.send_body(body)
    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    exchange.start(app, scope(method, target, raw))
    return exchange


async def ask(app: ASGIApp, method: str, target: str, body: bytes = b"", **headers: str) -> Exchange:
    return await begin(app, method, target, body, **headers).finish()


class FakeAccessLog:
    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []
        self.keys: list[str] = []

    def write(self, call: Any, status: int) -> None:
        self.keys.append(call.key_name)
        self.lines.append((f"{call.method} {call.target}", status))

    def write_entry(self, entry: Entry) -> None:
        _, key, method, target, _, status = entry[0]
        self.keys.append(key)
        self.lines.append((f"{method} {target}", status))
