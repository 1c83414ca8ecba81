"""Signals while the server starts."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

from msx_frontend.assembly.lifecycle import Lifecycle


class Starting:
    """A lifecycle whose server starts when the test lets it."""

    def __init__(self, upgrade_limit: float | None = 1.0) -> None:
        self.begun, self.may = asyncio.Event(), asyncio.Event()
        self.drained: asyncio.Event | None = None
        """It waits for that at its end."""
        self.started: list[Any] = []
        self.lifecycle = Lifecycle(self._start, 0, self.started.append, upgrade_limit)

    async def _start(self, parts: AsyncExitStack) -> Any:
        self.begun.set()
        await self.may.wait()
        context = SimpleNamespace(supervisor=None)
        return SimpleNamespace(
            info=SimpleNamespace(summary=str), models=SimpleNamespace(context=context), drain=self._drain
        )

    async def _drain(self, limit: float) -> None:
        if self.drained is not None:
            await self.drained.wait()


def test_it_starts_before_it_leaves() -> None:
    async def run() -> None:
        one = Starting()
        task = asyncio.create_task(one.lifecycle.run())
        await one.begun.wait()
        one.lifecycle.leave()
        for _ in range(5):
            await asyncio.sleep(0)
        one.may.set()
        await task
        assert one.started
        assert one.lifecycle.stopping

    asyncio.run(run())


def test_a_stop_ends_the_start() -> None:
    async def run(*, leaves: bool) -> None:
        one = Starting()
        task = asyncio.create_task(one.lifecycle.run())
        await one.begun.wait()
        if leaves:
            one.lifecycle.leave()
        one.lifecycle.stop()
        await task
        assert not one.started

    for leaves in (False, True):
        asyncio.run(run(leaves=leaves))


def test_a_command_that_tells_the_supervisor_and_its_frontend_has_told_once() -> None:
    """`killall`, say. A second such command ends the wait for running requests."""

    async def run(*, first: bool) -> None:
        one = Starting()
        one.drained = asyncio.Event()
        one.may.set()
        task = asyncio.create_task(one.lifecycle.run())
        while not one.started:
            await asyncio.sleep(0)
        for handed_on in (first, not first):
            one.lifecycle.stop(handed_on=handed_on)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not task.done()
        one.lifecycle.stop(handed_on=not first)
        await task

    for first in (False, True):
        asyncio.run(run(first=first))


def test_process_1_of_a_container_hands_its_signals_on_as_the_supervisor_does() -> None:
    async def run() -> None:
        one = Starting(upgrade_limit=None)
        one.drained = asyncio.Event()
        one.may.set()
        task = asyncio.create_task(one.lifecycle.run())
        while not one.started:
            await asyncio.sleep(0)
        for number in (signal.SIGTERM, signal.SIGRTMIN):
            os.kill(os.getpid(), number)
        while len(one.lifecycle._told) < 2:
            await asyncio.sleep(0)
        assert not task.done()
        one.lifecycle.stop()
        await task

    asyncio.run(run())
