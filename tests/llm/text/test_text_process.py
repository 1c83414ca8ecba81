"""Very long texts are tokenized in a process of their own, which ends with the call that it works for."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_core.generation.long_texts import SLICE, slices_of
from msx_llm.text import text_process
from msx_llm.text.text_answers import NICENESS
from msx_llm.text.text_calls import HEAD, ROOM, TextCall, length_in, message_limit
from msx_llm.text.text_process import AT_ONCE, TextProcesses
from msx_sdk.errors import InvalidInput, PredictionError
from msx_sdk.generation import ContextLengthExceeded
from tests.llm.text.process_texts import Divide, NoFiles, Refuse, Repeat, Sleep, Unknown, Where
from tests.processes import unreaped

Ran = Callable[[TextProcesses], Awaitable[None]]
PROGRAM = "tests.llm.text.process_texts"


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_process, "PROGRAM", PROGRAM)


def run(test: Ran) -> None:
    async def whole() -> None:
        processes = TextProcesses(NoFiles(), 1000)
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
    while unreaped([pid]):
        await asyncio.sleep(0.01)


def test_calls_are_answered_by_one_process_of_lower_priority() -> None:
    async def test(processes: TextProcesses) -> None:
        pid, nice = await processes.call(Where(), 1)
        assert pid != os.getpid()
        assert nice == min(os.nice(0) + NICENESS, 19)
        assert await processes.call(Where(), 1) == (pid, nice)
        with pytest.raises(InvalidInput, match="no"):
            await processes.call(Refuse(message="no"), 1)
        assert await processes.call(Where(), 1) == (pid, nice)

    run(test)


def test_a_text_is_freed_with_its_refusal() -> None:
    """Without a collection of cycles: texts may have megabytes."""

    async def test(processes: TextProcesses) -> None:
        call = Refuse(message="no")
        freed = weakref.ref(call)
        with pytest.raises(InvalidInput):
            await processes.call(call, 1)
        del call
        assert freed() is None

    gc.disable()
    try:
        run(test)
    finally:
        gc.enable()


def test_a_long_text_is_written_while_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, seen = 0, []

    def watched(call: TextCall[Any, Any]) -> Iterator[bytes]:
        for piece in slices_of(call):
            seen.append(turns)
            yield piece

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def test(processes: TextProcesses) -> None:
        neighbour = asyncio.create_task(count())
        with pytest.raises(InvalidInput, match="é"):
            await processes.call(Refuse(message="é" * SLICE * 8), 1)
        neighbour.cancel()
        assert len(seen) > 8
        assert len(set(seen)) == len(seen)

    monkeypatch.setattr(text_process, "slices_of", watched)
    run(test)


def test_a_bug_is_told() -> None:
    async def test(processes: TextProcesses) -> None:
        with pytest.raises(RuntimeError, match="ZeroDivisionError: division by zero"):
            await processes.call(Divide(number=0), 1)

    run(test)


@pytest.mark.parametrize("kind", [PredictionError, InvalidInput, ContextLengthExceeded])
def test_refusals_are_raised_as_they_were(kind: type[PredictionError]) -> None:
    async def test(processes: TextProcesses) -> None:
        with pytest.raises(kind) as raised:
            await processes.call(Refuse(message="no: é", kind=kind.__name__), 1)
        status = 507 if kind is PredictionError else 400
        assert (type(raised.value), raised.value.status, raised.value.message) == (kind, status, "no: é")
        assert raised.value.code == kind.code

    run(test)


def test_calls_and_answers_have_a_limit() -> None:
    most = message_limit(1000)
    assert ROOM < most < 2 * ROOM

    async def test(processes: TextProcesses) -> None:
        calls: list[TextCall[Any, Any]] = [Refuse(message="x" * most), Repeat(count=most)]
        for call in calls:
            with pytest.raises(PredictionError, match=f"bytes, the limit for long texts is {most}: send") as raised:
                await processes.call(call, 1)
            assert raised.value.status == 413
        assert len(await processes.call(Repeat(count=most - 100), 1)) == most - 100

    run(test)


def test_an_answer_that_claims_to_be_longer_is_not_read() -> None:
    with pytest.raises(PredictionError, match="has 11 bytes, the limit for long texts is 10"):
        length_in((11).to_bytes(HEAD, "little"), 10)


def test_a_call_of_another_type_ends_the_process() -> None:
    async def test(processes: TextProcesses) -> None:
        with pytest.raises(PredictionError, match="ended with status 1"):
            await processes.call(Unknown(), 1)

    run(test)


def test_a_call_that_is_cancelled_ends_its_process(tmp_path: Path) -> None:
    async def test(processes: TextProcesses) -> None:
        call = asyncio.create_task(processes.call(Sleep(path=str(tmp_path / "pid")), 1))
        pid = await started(tmp_path / "pid")
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert call.cancelled()
        await ended(pid)
        assert (await processes.call(Where(), 1))[0] != pid

    run(test)


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    async def test(processes: TextProcesses) -> None:
        call = asyncio.create_task(processes.call(Sleep(path=str(tmp_path / "pid")), 1))
        os.kill(await started(tmp_path / "pid"), signal.SIGKILL)
        with pytest.raises(PredictionError, match="was killed by SIGKILL, perhaps for want of memory") as raised:
            await call
        assert raised.value.status == 503
        await processes.call(Where(), 1)

    run(test)


def test_the_shortest_and_the_first_take_turns(tmp_path: Path) -> None:
    async def test(processes: TextProcesses) -> None:
        paths = [tmp_path / str(number) for number in range(AT_ONCE)]
        running = [asyncio.create_task(processes.call(Sleep(path=str(path)), 1)) for path in paths]
        pids = [await started(path) for path in paths]
        assert len({*pids}) == AT_ONCE
        order: list[int] = []

        async def waiting(size: int) -> None:
            await processes.call(Where(), size)
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
        pid, _ = await processes.call(Where(), 1)
        await ended(pid)
        assert (await processes.call(Where(), 1))[0] != pid

    run(test)


def test_a_system_without_room_for_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_process, "TextProcess", no_room)

    async def test(processes: TextProcesses) -> None:
        for _ in range(AT_ONCE + 1):
            with pytest.raises(PredictionError, match="cannot be started: ") as raised:
                await processes.call(Where(), 1)
            assert raised.value.status == 503

    run(test)


def no_room(files: object, most: int) -> None:
    raise BlockingIOError(11, "Resource temporarily unavailable")


def test_a_process_ends_with_the_one_that_has_started_it(tmp_path: Path) -> None:
    code = (
        "import asyncio; from msx_llm.text import text_process; "
        f"from {PROGRAM} import NoFiles, Sleep; text_process.PROGRAM = {PROGRAM!r}; "
        f"call = Sleep(path={str(tmp_path / 'pid')!r}); "
        "asyncio.run(text_process.TextProcesses(NoFiles(), 1000).call(call, 1))"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[3]) as starter:
        pid = asyncio.run(asyncio.wait_for(started(tmp_path / "pid"), 60))
        starter.kill()
    asyncio.run(asyncio.wait_for(ended(pid), 60))
