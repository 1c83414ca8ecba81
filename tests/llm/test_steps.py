"""The order in which steps start and are finished, on the engine's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np
import pytest

from msx_core.leading import Leading
from msx_llm.sampling.choice import TokenChoice
from msx_llm.step import (
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
from msx_llm.steps import StartedSteps

WATCHDOG = 120.0


class Told(Leading):
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def end(self, error: BaseException | None = None) -> None:
        self._notes.append("all done" if error is None else "told of the failure")


class Stages:
    """Runner of rank 0 of a pipeline: notes what it does."""

    vocab_size, slots, context = 8, 4, 64
    overlaps = True

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.led: list[Step] = []

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


def run(test: Callable[[Any, StartedSteps], Coroutine[Any, Any, None]], stages: Stages | None = None) -> Stages:
    stages = stages or Stages()

    async def call() -> None:
        await asyncio.wait_for(test(stages, StartedSteps(stages, stages.lead)), WATCHDOG)

    asyncio.run(call())
    return stages


def decoding(slot: int) -> Decode:
    return Decode((slot,), (5,), (0,))


def test_a_step_is_told_before_it_starts_and_over_when_its_logits_are_there() -> None:
    async def test(stages: Stages, steps: StartedSteps) -> None:
        logits = await steps.run(decoding(1))
        assert logits is not None
        assert logits.tolist() == [[1.0] * 8]

    stages = run(test)
    assert stages.notes == ["told", "decode [1]", "decode [1] finished", "all done"]
    assert stages.led == [decoding(1)]


def test_a_copy_has_no_logits() -> None:
    async def test(stages: Stages, steps: StartedSteps) -> None:
        assert await steps.run(CopyPositions(0, 1, 9)) is None

    assert run(test).notes == ["told", "copy 0 to 1", "all done"]


def test_one_rank_tells_nobody() -> None:
    async def test(stages: Stages, steps: StartedSteps) -> None:
        assert await StartedSteps(stages).run(decoding(1)) is not None

    assert run(test).notes == ["decode [1]", "decode [1] finished"]


def test_all_that_is_started_in_one_turn_starts_before_one_is_waited_for() -> None:
    async def test(stages: Stages, steps: StartedSteps) -> None:
        await asyncio.gather(steps.run(Prefill(0, 0, (1, 2))), steps.run(decoding(1)))

    notes = [note for note in run(test).notes if note not in ("told", "all done")]
    assert notes == ["prefill 0", "decode [1]", "prefill 0 finished", "decode [1] finished"]


def test_a_lane_that_got_its_logits_starts_its_next_step_before_others_are_waited_for() -> None:
    async def lane(steps: StartedSteps, slot: int) -> None:
        for _ in range(3):
            await steps.run(decoding(slot))

    async def test(stages: Stages, steps: StartedSteps) -> None:
        await asyncio.gather(lane(steps, 0), lane(steps, 1))

    notes = [note for note in run(test).notes if note not in ("told", "all done")]
    turns = ["decode [0] finished", "decode [0]", "decode [1] finished", "decode [1]"]
    last = ["decode [0] finished", "decode [1] finished"]
    assert notes == ["decode [0]", "decode [1]", *turns, *turns, *last]


def test_what_has_come_meanwhile_is_heard_before_a_step_is_waited_for() -> None:
    async def test(stages: Stages, steps: StartedSteps) -> None:
        answer = steps.run(decoding(1))
        asyncio.get_running_loop().call_soon(stages.notes.append, "a request")
        asyncio.get_running_loop().call_soon(lambda: steps.run(decoding(0)))
        await answer
        await steps.run(decoding(1))

    notes = run(test).notes
    assert notes.index("decode [0]") < notes.index("decode [0] finished") < len(notes)


@pytest.mark.parametrize(("slot", "text"), [(3, "no slot 3"), (2, "no logits")])
def test_what_a_step_raises_is_its_own(slot: int, text: str) -> None:
    async def test(stages: Stages, steps: StartedSteps) -> None:
        with pytest.raises(RuntimeError, match=text):
            await steps.run(decoding(slot))
        assert await steps.run(decoding(1)) is not None

    stages = run(test)
    assert "told of the failure" in stages.notes
    assert stages.notes[-1] == "all done"


def test_what_is_before_a_mixed_step_is_done_first() -> None:
    async def test(stages: Stages, steps: StartedSteps) -> None:
        step = Mixed((TokenChunk(1, 0, (7,)),), (TokenChoice(),), (AssignBlocks(1, (2,)),))
        assert await steps.run(step) is not None

    assert run(test, Followed()).notes == ["told", "assign 1", "mixed (7,)", "mixed (7,) finished", "all done"]


def test_an_answer_whose_request_has_ended() -> None:
    async def test(stages: Stages, steps: StartedSteps) -> None:
        answer, failing = steps.run(decoding(0)), steps.run(decoding(2))
        answer.cancel()
        failing.cancel()
        assert await steps.run(decoding(1)) is not None

    run(test)
