from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from msx_frontend.errors import BadRequest
from msx_frontend.generation.merging import AT_ONCE, merged
from tests.unit.frontend.jobs import run


async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        await asyncio.sleep(0)
        yield number


async def fails() -> AsyncIterator[int]:
    yield 0
    raise BadRequest("no")


def test_items_come_with_the_number_of_their_stream() -> None:
    async def test() -> None:
        seen = [item async for item in merged([numbers(3), numbers(1), numbers(0)])]
        assert sorted(seen) == [(0, 0), (0, 1), (0, 2), (1, 0)]
        assert [item async for item in merged([numbers(2)])] == [(0, 0), (0, 1)]

    run(test())


def test_the_first_error_ends_all() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                await asyncio.sleep(0)
                yield 1
        finally:
            closed.set()

    async def test() -> None:
        with pytest.raises(BadRequest):
            async for _ in merged([endless(), fails()]):
                pass
        await closed.wait()

    run(test())


def test_only_so_many_run_at_once() -> None:
    running = most = 0

    async def counted() -> AsyncIterator[int]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        yield 1
        running -= 1

    async def test() -> None:
        assert len([item async for item in merged([counted() for _ in range(3 * AT_ONCE)])]) == 3 * AT_ONCE

    run(test())
    assert most == AT_ONCE
