"""The function behind uvicorn."""

from __future__ import annotations

import asyncio

from benchmarks.load.client import Address, Answer, Connection
from benchmarks.servers import bare_asgi


async def ask(address: Address) -> list[Answer]:
    connection = await Connection.open(address)
    try:
        return [await connection.post(bare_asgi.PATH, body) for body in (b"x" * 128, b"y" * 1_000_000, b"")]
    finally:
        connection.leave()


def test_it_answers_with_the_whole_body() -> None:
    with bare_asgi.serve_echo() as (address, pid):
        assert asyncio.run(ask(address)) == [(200, b"x" * 128), (200, b"y" * 1_000_000), (200, b"")]
        assert pid > 0
