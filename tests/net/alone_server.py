"""A server of msx_net alone: an API with a route and a job, and a service of gRPC.

It runs as a process of its own, says its two addresses, and ends with its standard input.
"""

# ruff: noqa: E402  # imports stand behind the finder
from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

KNOWN = ("msx_core", "msx_net")


class Alone(MetaPathFinder):
    """Refuse the other packages of MSX."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith("msx_") and fullname.partition(".")[0] not in KNOWN:
            raise ImportError(f"msx_net imports {fullname}")
        return None


sys.meta_path.insert(0, Alone())

from msx_core.service_errors import BadRequest
from msx_net.connections.limits import ConnectionLimits
from msx_net.grpc.admission import Admission
from msx_net.grpc.context import CallContext
from msx_net.grpc.direct.listener import DirectListener
from msx_net.grpc.listen import GrpcListen, GrpcServed
from msx_net.grpc.service import Method, Service
from msx_net.http.exchange import Exchange
from msx_net.http.family import Failure, Family, JobRoute, Reply, ReplySink, Route
from msx_net.http.request import Request
from msx_net.http.router import Router
from msx_net.http.v2.listener import RestHttp2
from msx_net.keys import ClientKey
from msx_net.listening.address import Address
from msx_net.listening.listener import Listener
from msx_net.logged_calls import Entry, LoggedCall

MOST = 1000
"""Bytes of a body or a message."""


class Shout:
    """A job that is answered at once."""

    key: ClientKey | None = None

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        if not body:
            raise BadRequest("There is nothing to shout.")
        sink.answer(200, "", [("content-type", "text/plain")], body.upper())


async def words(request: Request) -> Reply:
    return Reply(b'["hey"]')


FAMILY = Family(
    "shouting",
    (
        Route("GET", "/words", words, key=None),
        Route("POST", "/shout", JobRoute(lambda head, names: Shout()), key=None, model=""),
    ),
    lambda error: Failure(error.status, error.message.encode()),
)


async def shout(request: bytes, context: CallContext) -> bytes:
    return request.upper()


SERVICE = Service(
    "shouting.Shouting", (Method("shouting.Shouting", "Shout", False, False, bytes, bytes, shout, key=None),)
)


class NoLog:
    def write(self, call: LoggedCall, status: int) -> None: ...

    def write_entry(self, entry: Entry) -> None: ...


def rest() -> Listener:
    app = Exchange(Router([FAMILY], FAMILY), NoLog(), limit=MOST)
    direct, limits = app.direct(), ConnectionLimits()
    address = Address("http", "127.0.0.1", 0)
    return Listener("inference", address, app, direct=direct, http2=RestHttp2(app, direct, limits, MOST))


async def main() -> None:
    calls = DirectListener(
        GrpcListen("grpc_inference", "127.0.0.1", 0, MOST, MOST), GrpcServed([SERVICE], Admission(None))
    )
    parts: tuple[Any, ...] = (rest(), calls)
    for one in parts:
        await one.start()
    print(*(one.address for one in parts), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for one in parts:
        await one.stop(1)


asyncio.run(main())
