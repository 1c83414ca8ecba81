"""A rank that takes more memory than it may."""

from __future__ import annotations

import asyncio

import pytest

from msx_frontend.workers import memory_watch
from msx_frontend.workers.memory_watch import MemoryWatch
from tests.unit.frontend.jobs import run


@pytest.fixture(autouse=True)
def looks_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_watch, "LOOK", 0)


def test_the_rank_that_passes_it_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {10: iter([1, 2, 3, 4]), 11: iter([5, 100, 101])}
    monkeypatch.setattr(memory_watch, "own_memory_of_all", lambda pid: next(taken[pid]))

    async def test() -> None:
        told: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        watch = MemoryWatch(100, lambda: {0: 10, 1: 11}, lambda rank, size: told.put_nowait((rank, size)))
        watch.start()
        assert await told.get() == (1, 101)
        assert next(taken[10]) == 4, "it has looked no more"
        watch.stop()
        assert told.empty()

    run(test())


def test_without_a_limit_the_memory_is_not_looked_at() -> None:
    async def test() -> None:
        watch = MemoryWatch(None, lambda: pytest.fail("looked"), lambda rank, size: None)
        watch.start()
        await asyncio.sleep(0)
        watch.stop()

    run(test())


def test_a_stopped_one_looks_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_watch, "own_memory_of_all", lambda pid: 1)

    async def test() -> None:
        watch = MemoryWatch(100, lambda: {0: 10}, lambda rank, size: None)
        watch.start()
        watch.stop()
        (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "memory-watch"]
        with pytest.raises(asyncio.CancelledError):
            await task

    run(test())
