from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from msx_llm import later_graphs
from msx_llm.later_graphs import LaterGraphs


class Runner:
    """Has so many graphs left; with `fails`, the next one cannot be compiled."""

    def __init__(self, uncompiled: int, fails: bool = False) -> None:
        self.uncompiled, self.fails = uncompiled, fails

    def warm_up_first(self, report: object) -> None: ...

    def compile_next(self) -> str:
        if self.fails:
            raise RuntimeError("no memory")
        self.uncompiled -= 1
        return "decode 4 × 64"


class Server:
    """The requests in progress, the steps so far, and what was kept."""

    def __init__(self) -> None:
        self.requests, self.steps, self.kept = 0, 0, 0

    @contextmanager
    def keep(self) -> Iterator[None]:
        yield
        self.kept += 1

    def graphs(self, runner: Runner) -> LaterGraphs:
        return LaterGraphs(runner, lambda: bool(self.requests), lambda: self.steps, self.keep)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later_graphs, "IDLE", 0)


def test_all_graphs_are_compiled_where_nobody_asks() -> None:
    runner, server = Runner(3), Server()
    asyncio.run(server.graphs(runner).work())
    assert runner.uncompiled == 0
    assert server.kept == 3


def test_none_is_compiled_while_there_are_requests() -> None:
    async def scene() -> None:
        runner, server = Runner(3), Server()
        server.requests = 1
        task = asyncio.create_task(server.graphs(runner).work())
        for _ in range(20):
            await asyncio.sleep(0)
        assert runner.uncompiled == 3
        server.requests = 0
        await task
        assert runner.uncompiled == 0

    asyncio.run(scene())


def test_under_requests_without_end_one_is_compiled_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later_graphs, "MOST_WAIT", 0)
    runner, server = Runner(2), Server()
    server.requests = 1
    asyncio.run(server.graphs(runner).work())
    assert runner.uncompiled == 0


def test_what_cannot_be_compiled_is_left(caplog: pytest.LogCaptureFixture) -> None:
    runner, server = Runner(2, fails=True), Server()
    asyncio.run(server.graphs(runner).work())
    assert runner.uncompiled == 2
    assert server.kept == 0
    assert "a graph could not be compiled" in caplog.text
