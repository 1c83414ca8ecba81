"""The key of a request is judged by its head, for each route of each family, both ways and over HTTP/1.1 and HTTP/2:
no byte of a body counts without a key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from msx_core.held_bytes import UNCOUNTED
from tests.contract.test_both_ways import LIMIT, Ask, Served, served
from tests.frontend.harness import until
from tests.loops import run
from tests.raw_grpc import RawCall

BODY = bytes((LIMIT + UNCOUNTED) // 2)
"""Bytes of a body whose last one never comes: more than what is not counted, and not too large."""


class Connection:
    """A client that begins a request and hears of its answer."""

    def __init__(self, heard: Coroutine[Any, Any, Any], close: Callable[[], None]) -> None:
        self._heard, self._close = asyncio.ensure_future(heard), close

    @property
    def answered(self) -> bool:
        return self._heard.done()

    def close(self) -> None:
        self._heard.cancel()
        self._close()


async def http1(address: str, ask: Ask) -> Connection:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{ask.method} {ask.path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(BODY) + 1}\r\n\r\n".encode())
    writer.write(BODY)
    return Connection(reader.readuntil(b"\r\n\r\n"), writer.close)


async def http2(address: str, ask: Ask) -> Connection:
    fields = ((":method", ask.method), ("content-type", "text/plain"), ("content-length", str(len(BODY) + 1)))
    call = await RawCall.begin(address, ask.path, fields)
    call.write(BODY, end=False)
    return Connection(call.heard(), call.close)


async def check(one: Served, ask: Ask, begin: Callable[[str, Ask], Coroutine[Any, Any, Connection]]) -> str:
    """Whether it is `answered` by its head, or its body is `counted apart`."""
    client = await begin(str(one.addresses[ask.listener]).removeprefix("http://"), ask)
    await until(lambda: client.answered or one.held.public.held == len(BODY))
    assert one.held.held == 0, ask
    found = "answered" if client.answered else "counted apart"
    client.close()
    await until(lambda: one.held.public.held == 0)
    return found


@pytest.mark.parametrize("version", [http1, http2])
def test_no_body_counts_without_a_key(
    tmp_path: Path, version: Callable[[str, Ask], Coroutine[Any, Any, Connection]]
) -> None:
    async def test() -> None:
        async with served(tmp_path / "one", keys=True) as one:
            public = {
                (family.listener, route.method, route.path)
                for family in one.front.families
                for route in family.routes
                if route.key is None or family.listener == "metrics"
            }
            found = {route: await check(one, ask, version) for route, ask in one.asks_of_routes().items()}
            assert {route for route, how in found.items() if how == "counted apart"} == public & {*found}

    run(test())
