"""The engine on a thread of its own, with requests from another loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from msx_llm.engine import Engine
from msx_llm.engine_thread import EngineThread
from msx_llm.step import Array
from msx_llm.steps import StartedSteps
from msx_sdk.errors import InvalidInput, PredictionError
from msx_sdk.generation import GenerateDelta
from tests.llm.fakes import VOCAB, FakeRunner, alone, ids, limits, make_tokenizer, read, request

WATCHDOG = 120.0


class StartingFake(FakeRunner):
    """Computes at the start; `gate` holds up whoever waits for logits."""

    overlaps = False

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.waits = threading.Event()

    def start_prefill(
        self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False
    ) -> Callable[[], Array]:
        return self._later(self.prefill(slot, start, tokens, all_logits))

    def start_decode(
        self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]
    ) -> Callable[[], Array]:
        return self._later(self.decode(slots, tokens, positions))

    def _later(self, logits: Array) -> Callable[[], Array]:
        def finish() -> Array:
            self.waits.set()
            assert self.gate.wait(WATCHDOG)
            return logits

        return finish


class Scene:
    def __init__(self) -> None:
        self.runner, self.published = StartingFake(), 0
        self.engine = Engine(
            VOCAB, make_tokenizer(), limits(), StartedSteps(self.runner).run, overlaps=False, on_published=self._note
        )
        self.thread = EngineThread(self.engine)

    def _note(self) -> None:
        self.published += 1


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    it = Scene()
    try:
        yield it
    finally:
        it.runner.gate.set()
        await it.thread.close()
        assert not [thread for thread in threading.enumerate() if thread.name == "engine"]


def play(test: Callable[[Scene], Any]) -> None:
    async def main() -> None:
        async with scene() as it:
            await asyncio.wait_for(test(it), WATCHDOG)

    asyncio.run(main())


def test_requests_from_another_loop() -> None:
    async def test(it: Scene) -> None:
        handles = [it.engine.submit(request([place, 7], 5 + place)) for place in range(6)]
        deltas = await asyncio.gather(*map(read, handles))
        assert [ids(one) for one in deltas] == [alone([place, 7], 5 + place) for place in range(6)]
        assert it.published

    play(test)


def test_deltas_are_passed_on_by_the_engines_thread() -> None:
    async def test(it: Scene) -> None:
        passed, threads = list[GenerateDelta](), set[str]()

        def pass_on(delta: GenerateDelta, data: bytes) -> bool:
            passed.append(delta)
            threads.add(threading.current_thread().name)
            return True

        it.runner.gate.clear()
        handle = it.engine.submit(request([1], 5))
        handle.offer_to(pass_on)
        reader = asyncio.create_task(read(handle))
        await asyncio.to_thread(it.runner.waits.wait, WATCHDOG)
        it.runner.gate.set()
        deltas = await reader
        assert ids([*passed, *deltas]) == alone([1], 5)
        assert threads == {"engine"}

    play(test)


def test_a_wrong_request_is_refused_at_once() -> None:
    async def test(it: Scene) -> None:
        it.runner.gate.clear()
        with it.engine.submit(request([1], 5)):
            await asyncio.to_thread(it.runner.waits.wait, WATCHDOG)
            with pytest.raises(InvalidInput):
                it.engine.submit(request([VOCAB], 5))
            it.runner.gate.set()

    play(test)


def test_a_deadline_does_not_wait_for_the_step() -> None:
    async def test(it: Scene) -> None:
        it.runner.gate.clear()
        with (
            it.engine.submit(request([1], None), deadline=time.monotonic() + 0.01) as handle,
            pytest.raises(PredictionError, match="time was up") as error,
        ):
            await read(handle)
        assert error.value.status == 504
        it.runner.gate.set()

    play(test)


def test_who_leaves_frees_the_slot() -> None:
    async def test(it: Scene) -> None:
        with it.engine.submit(request([1], None)) as handle:
            assert await anext(handle)
        whole = await read(it.engine.submit(request([2], 4)))
        assert ids(whole) == alone([2], 4)
        assert it.engine.stats().requests == 0

    play(test)


def test_the_end_fails_what_runs() -> None:
    """It comes while a step is waited for: the text cannot end before it."""

    async def main() -> None:
        it = Scene()
        it.runner.gate.clear()
        handle = it.engine.submit(request([1], None))
        await asyncio.to_thread(it.runner.waits.wait, WATCHDOG)
        end = asyncio.create_task(it.thread.close())
        await asyncio.sleep(0)  # the engine's loop has it, and comes to it after the step
        it.runner.gate.set()
        await end
        with pytest.raises(PredictionError, match="The model is shutting down"):
            await read(handle)
        with pytest.raises(PredictionError, match="The model is shutting down"):
            it.engine.submit(request([1]))

    asyncio.run(asyncio.wait_for(main(), WATCHDOG))
