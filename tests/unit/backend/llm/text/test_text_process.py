"""Very long texts are tokenized in a process of their own, which ends with the call that it works for."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from msx_backend.llm.text import text_process
from msx_backend.llm.text.text_process import AT_ONCE, NICENESS, TextProcesses
from msx_sdk.errors import InvalidInput, PredictionError
from tests.unit.backend.llm.text.process_texts import CallTexts, Text

Ran = Callable[[TextProcesses], Awaitable[None]]


def run(test: Ran) -> None:
    async def whole() -> None:
        processes = TextProcesses(CallTexts)
        try:
            await asyncio.wait_for(test(processes), 60)
        finally:
            processes.close()

    asyncio.run(whole())


async def started(path: Path) -> int:
    """The process that writes its number into the file."""
    while not path.exists() or not path.read_text():
        await asyncio.sleep(0.01)
    return int(path.read_text())


async def ended(pid: int) -> None:
    while psutil.pid_exists(pid):
        await asyncio.sleep(0.01)


def test_calls_are_answered_by_one_process_of_lower_priority() -> None:
    async def test(processes: TextProcesses) -> None:
        pid, nice = await processes.call("where", None, 1)
        assert pid != os.getpid()
        assert nice == min(os.nice(0) + NICENESS, 19)
        assert await processes.call("where", None, 1) == (pid, nice)
        with pytest.raises(InvalidInput, match="no"):
            await processes.call("refuse", "no", 1)
        assert await processes.call("where", None, 1) == (pid, nice)

    run(test)


def test_a_text_is_freed_with_its_refusal() -> None:
    """Without a collection of cycles: texts may have megabytes."""

    async def test(processes: TextProcesses) -> None:
        text = Text("no")
        freed = weakref.ref(text)
        with pytest.raises(InvalidInput):
            await processes.call("refuse", text, 1)
        del text
        assert freed() is None

    gc.disable()
    try:
        run(test)
    finally:
        gc.enable()


def test_a_bug_is_told() -> None:
    async def test(processes: TextProcesses) -> None:
        with pytest.raises(RuntimeError, match="ZeroDivisionError: division by zero"):
            await processes.call("divide", 0, 1)

    run(test)


def test_a_call_that_is_cancelled_ends_its_process(tmp_path: Path) -> None:
    async def test(processes: TextProcesses) -> None:
        call = asyncio.create_task(processes.call("sleep", tmp_path / "pid", 1))
        pid = await started(tmp_path / "pid")
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert call.cancelled()
        await ended(pid)
        assert (await processes.call("where", None, 1))[0] != pid

    run(test)


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    async def test(processes: TextProcesses) -> None:
        call = asyncio.create_task(processes.call("sleep", tmp_path / "pid", 1))
        os.kill(await started(tmp_path / "pid"), signal.SIGKILL)
        with pytest.raises(PredictionError, match="was killed by SIGKILL, perhaps for want of memory") as raised:
            await call
        assert raised.value.status == 503
        await processes.call("where", None, 1)

    run(test)


def test_the_shortest_and_the_first_take_turns(tmp_path: Path) -> None:
    async def test(processes: TextProcesses) -> None:
        running = [asyncio.create_task(processes.call("sleep", tmp_path / str(number), 1)) for number in range(AT_ONCE)]
        pids = [await started(tmp_path / str(number)) for number in range(AT_ONCE)]
        assert len({*pids}) == AT_ONCE
        order: list[int] = []

        async def waiting(size: int) -> None:
            await processes.call("where", None, size)
            order.append(size)

        calls = [asyncio.create_task(waiting(size)) for size in (5, 9, 2, 7, 3)]
        left = asyncio.create_task(waiting(1))
        await asyncio.sleep(0)
        left.cancel()
        running[0].cancel()
        await asyncio.gather(*calls)
        assert order == [2, 5, 3, 9, 7]
        running[1].cancel()
        await asyncio.gather(*running, left, return_exceptions=True)

    run(test)


def test_a_process_that_has_nothing_to_do_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_process, "IDLE", 0.0)

    async def test(processes: TextProcesses) -> None:
        pid, _ = await processes.call("where", None, 1)
        await ended(pid)
        assert (await processes.call("where", None, 1))[0] != pid

    run(test)


def test_a_system_without_room_for_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_process, "TextProcess", no_room)

    async def test(processes: TextProcesses) -> None:
        for _ in range(AT_ONCE + 1):
            with pytest.raises(PredictionError, match="cannot be started: ") as raised:
                await processes.call("where", None, 1)
            assert raised.value.status == 503

    run(test)


def no_room(make: object) -> None:
    raise BlockingIOError(11, "Resource temporarily unavailable")


def test_a_process_ends_with_the_one_that_has_started_it(tmp_path: Path) -> None:
    code = (
        "import asyncio, pathlib; from msx_backend.llm.text.text_process import TextProcesses; "
        "from tests.unit.backend.llm.text.process_texts import CallTexts; "
        f"asyncio.run(TextProcesses(CallTexts).call('sleep', pathlib.Path({str(tmp_path / 'pid')!r}), 1))"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[5]) as starter:
        pid = asyncio.run(asyncio.wait_for(started(tmp_path / "pid"), 60))
        starter.kill()
    asyncio.run(asyncio.wait_for(ended(pid), 60))
