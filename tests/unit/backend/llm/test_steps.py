"""The order in which steps start and are finished, on their thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np
import pytest

from msx_backend.llm.sampling.choice import TokenChoice
from msx_backend.llm.step import (
    UNREAD,
    Array,
    AssignBlocks,
    CopyPositions,
    Decode,
    Mixed,
    Prefill,
    Step,
    TokenChunk,
    decode,
)
from msx_backend.llm.steps import StepThread
from msx_sdk._internal.leading import Leading

WATCHDOG = 20.0


class Told(Leading):
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def end(self, error: BaseException | None = None) -> None:
        self._notes.append("all done" if error is None else "told of the failure")


class Stages:
    """Of a pipeline, rank 0's runner: notes what it does. `held` are steps whose logits the test lets go."""

    vocab_size, slots, context = 8, 4, 64

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.led: list[Step] = []
        self.held: dict[int, threading.Event] = {}

    def start_prefill(
        self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False
    ) -> Callable[[], Array]:
        return self._start(f"prefill {slot}", slot)

    def start_decode(
        self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]
    ) -> Callable[[], Array]:
        return self._start(f"decode {list(slots)}", slots[0])

    def copy(self, source: int, target: int, length: int) -> None:
        self.notes.append(f"copy {source} to {target}")

    def prefill(self, *args: Any) -> Any:
        raise AssertionError

    decode = warm_up = prefill

    def lead(self, message: bytes) -> Leading:
        self.led.append(decode(message))
        self.notes.append("told")
        return Told(self.notes)

    def _start(self, what: str, slot: int) -> Callable[[], Array]:
        self.notes.append(what)
        if slot == 3:
            raise RuntimeError("no slot 3")
        return lambda: self._finish(what, slot)

    def _finish(self, what: str, slot: int) -> Array:
        if event := self.held.get(slot):
            assert event.wait(WATCHDOG)
        self.notes.append(f"{what} finished")
        if slot == 2:
            raise RuntimeError("no logits")
        return np.full((1, 8), slot, np.float32)


class Followed(Stages):
    """Takes tokens that were chosen from where they are."""

    def assign(self, slot: int, blocks: Sequence[int]) -> None:
        self.notes.append(f"assign {slot}")

    block, blocks = 4, 4

    def mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Array:
        raise AssertionError

    def start_mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Callable[[], Array]:
        return self._start(f"mixed {chunks[0].tokens}", chunks[0].slot)


def run(test: Callable[[Any, StepThread], Coroutine[Any, Any, None]], follows: bool = False) -> Stages:
    stages = Followed() if follows else Stages()

    async def call() -> None:
        thread = StepThread(stages, stages.lead, follows)
        try:
            await asyncio.wait_for(test(stages, thread), WATCHDOG)
        finally:
            thread.close()

    asyncio.run(call())
    return stages


def decoding(slot: int) -> Decode:
    return Decode((slot,), (5,), (0,))


def test_a_step_is_told_before_it_starts_and_over_when_its_logits_are_there() -> None:
    async def test(stages: Stages, thread: StepThread) -> None:
        logits = await thread.run(decoding(1))
        assert logits is not None
        assert logits.tolist() == [[1.0] * 8]

    stages = run(test)
    assert stages.notes == ["told", "decode [1]", "decode [1] finished", "all done"]
    assert stages.led == [decoding(1)]


def test_a_copy_has_no_logits() -> None:
    async def test(stages: Stages, thread: StepThread) -> None:
        assert await thread.run(CopyPositions(0, 1, 9)) is None

    assert run(test).notes == ["told", "copy 0 to 1", "all done"]


def test_the_next_step_starts_before_the_logits_of_the_first_are_waited_for() -> None:
    async def test(stages: Stages, thread: StepThread) -> None:
        stages.held[0] = threading.Event()
        first = thread.run(Prefill(0, 0, (1, 2)))
        second = thread.run(decoding(1))
        stages.held[0].set()
        await asyncio.gather(first, second)

    notes = run(test).notes
    # The first may have been waited for already when the second came; never the other way round.
    assert notes.index("prefill 0 finished") < notes.index("decode [1] finished")


def test_who_just_got_logits_may_start_the_next_step_first() -> None:
    async def test(stages: Stages, thread: StepThread) -> None:
        gate = stages.held[0] = threading.Event()
        opening = thread.run(decoding(0))  # holds the thread until all three are ordered
        first, second = thread.run(Prefill(1, 0, (1,))), thread.run(decoding(1))
        gate.set()
        await opening
        await first
        third = thread.run(Prefill(0, 0, (1,)))
        await asyncio.gather(second, third)

    starts = [note for note in run(test).notes if note.startswith(("prefill", "decode")) and "finished" not in note]
    assert starts == ["decode [0]", "prefill 1", "decode [1]", "prefill 0"]


@pytest.mark.parametrize(("slot", "text"), [(3, "no slot 3"), (2, "no logits")])
def test_what_a_step_raises_is_its_own(slot: int, text: str) -> None:
    async def test(stages: Stages, thread: StepThread) -> None:
        with pytest.raises(RuntimeError, match=text):
            await thread.run(decoding(slot))
        assert await thread.run(decoding(1)) is not None

    stages = run(test)
    assert "told of the failure" in stages.notes
    assert stages.notes[-1] == "all done"


def test_what_was_ordered_is_done_before_the_thread_ends() -> None:
    async def test(stages: Stages, thread: StepThread) -> None:
        for _ in range(5):
            thread.run(decoding(1))

    assert run(test).notes.count("decode [1] finished") == 5


def choosing(token: int) -> Mixed:
    return Mixed((TokenChunk(1, 0, (token,)),), (TokenChoice(),), (AssignBlocks(1, (2,)),))


def test_a_step_follows_before_the_tokens_of_the_last_one_are_read() -> None:
    async def test(stages: Stages, thread: StepThread) -> None:
        answer = thread.run(choosing(7))
        while "mixed (7,)" not in stages.notes:
            await asyncio.sleep(0)
        following = thread.run(choosing(UNREAD))
        await answer
        thread.none_follows()
        await following

    notes = [note for note in run(test, follows=True).notes if "told" not in note]
    step = ["assign 1", "mixed (7,)", "assign 1", "mixed (-1,)"]
    assert notes == [*step, "mixed (7,) finished", "all done", "mixed (-1,) finished", "all done"]


def test_nobody_says_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens are read after a while, and a step that is followed by none does not end the thread."""
    monkeypatch.setattr("msx_backend.llm.steps.LONGEST", 0.01)

    async def test(stages: Stages, thread: StepThread) -> None:
        thread.none_follows()
        assert await thread.run(choosing(7)) is not None

    assert run(test, follows=True).notes[-1] == "all done"


def test_an_answer_whose_request_has_ended() -> None:
    async def test(stages: Stages, thread: StepThread) -> None:
        stages.held[0] = threading.Event()
        answer, failing = thread.run(decoding(0)), thread.run(decoding(2))
        answer.cancel()
        failing.cancel()
        stages.held[0].set()
        assert await thread.run(decoding(1)) is not None

    run(test)
