"""The events of a job's stream, numbered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from msx_frontend.apis.jobs import events
from msx_frontend.apis.jobs.events import growing, whole
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.records import JobHead
from tests.loops import run


def running(data: bytes = b"") -> tuple[Entry, Any]:
    entry = Entry("job_1", "", 0.0, JobHead(path="/v1/completions", state="running"))
    entry.sink = sink = SimpleNamespace(data=bytearray(data))  # type: ignore[assignment]
    return entry, sink


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(100):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come")


@pytest.mark.parametrize("at_once", [1, 1 << 16])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n"])
def test_each_kind_of_empty_line_ends_an_event(end: bytes, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "AT_ONCE", at_once)

    async def test() -> None:
        data = end.join([b"data: a", b"data: b", b""])
        numbered = b"id: 0-1\ndata: a%bid: 0-2\ndata: b%b" % (end, end)
        assert b"".join([one async for one in whole(data + b"data: c", "0", 0)]) == numbered
        assert b"".join([one async for one in whole(data, "0", 1)]) == b"id: 0-2\ndata: b" + end

        entry, sink = running()
        told = bytearray()

        async def listen() -> None:
            async for one in growing(entry, sink, 0):
                told.extend(one)

        listener = asyncio.ensure_future(listen())
        for byte in data:
            sink.data.append(byte)
            entry.changed()
            await asyncio.sleep(0)
        await until(lambda: told == numbered)
        entry.head = JobHead(path="", state="done")
        entry.changed()
        await listener

    run(test())


def test_a_large_stream_leaves_the_loop_to_others() -> None:
    async def test() -> None:
        turns, data = 0, b"data: x\n\n" * 100_000
        ended = False

        async def others() -> None:
            nonlocal turns
            while not ended:
                turns += 1
                await asyncio.sleep(0)

        for stream in (whole(data, "0", 0), growing(*running(data), 0)):
            turns, ended = 0, False
            beside = asyncio.ensure_future(others())
            await asyncio.sleep(0)
            told = 0
            async for one in stream:
                told += one.count(b"id: ")
                if told == 100_000:
                    break
            ended = True
            await beside
            assert turns >= len(data) // events.AT_ONCE

    run(test())


def test_a_stream_that_ends_while_its_reader_is_slow_is_told_whole() -> None:
    async def test() -> None:
        entry, sink = running(b"data: a\n\n")
        stream = growing(entry, sink, 0)
        assert await anext(stream) == b"id: 0-1\ndata: a\n\n"
        sink.data += b"data: b\n\n"
        entry.head = JobHead(path="", state="done")
        entry.changed()
        rest = asyncio.wait_for(asyncio.ensure_future(collected(stream)), 60)
        assert await rest == b"id: 0-2\ndata: b\n\n"

    run(test())


async def collected(stream: Any) -> bytes:
    return b"".join([one async for one in stream])
