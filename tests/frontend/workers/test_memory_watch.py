"""A rank that takes more memory than it may."""

from __future__ import annotations

import asyncio

import pytest

from msx_frontend.workers import memory_watch
from msx_frontend.workers.memory_watch import MemoryWatch
from tests.loops import run


@pytest.fixture(autouse=True)
def looks_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_watch, "LOOK", 0)


class Rank:
    def __init__(self, rank: int, *taken: int) -> None:
        self.rank, self.taken = rank, iter(taken)

    async def memory_taken(self) -> int:
        await asyncio.sleep(0)
        return next(self.taken)


def test_the_rank_that_passes_it_is_told_once() -> None:
    first, second = Rank(0, 1, 2, 3, 4), Rank(1, 5, 100, 101)

    async def test() -> None:
        told: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        watch = MemoryWatch(100, [first, second], lambda rank, size: told.put_nowait((rank, size)))
        watch.start()
        assert await told.get() == (1, 101)
        assert next(first.taken) == 4, "it has looked no more"
        watch.stop()
        assert told.empty()

    run(test())


def test_without_a_limit_the_memory_is_not_looked_at() -> None:
    async def test() -> None:
        watch = MemoryWatch(None, [Rank(0)], lambda rank, size: None)
        watch.start()
        await asyncio.sleep(0)
        watch.stop()

    run(test())


def test_a_stopped_one_looks_no_more() -> None:
    async def test() -> None:
        watch = MemoryWatch(100, [Rank(0, 1)], lambda rank, size: None)
        watch.start()
        watch.stop()
        (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "memory-watch"]
        with pytest.raises(asyncio.CancelledError):
            await task

    run(test())
