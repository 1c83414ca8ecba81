from __future__ import annotations

import pytest

from msx_llm.step import (
    AssignBlocks,
    CopyPositions,
    Decode,
    Prefill,
    Prefills,
    Step,
    Stretch,
    TokenChunk,
    decode,
    encode,
)
from msx_llm.step_runner import execute
from tests.llm.fakes import FakeGroupingRunner, FakeRunner, FakeStretchingRunner


@pytest.mark.parametrize(
    "step",
    [
        Prefill(1, 2, (3, 4), True),
        Prefill(0, 0, (1,)),
        Decode((1, 2), (3, 4), (5, 6)),
        CopyPositions(1, 2, 3),
        AssignBlocks(1, (2, 3)),
        Stretch(1, 20),
        Prefills((TokenChunk(1, 2, (3, 4)), TokenChunk(0, 0, (5,)))),
    ],
)
def test_a_step_travels_as_bytes(step: Step) -> None:
    assert decode(encode(step)) == step


def test_steps_are_executed() -> None:
    runner = FakeRunner(slots=2)
    one, every = execute(runner, Prefill(0, 0, (1, 2))), execute(runner, Prefill(1, 0, (1, 2), True))
    assert one is not None
    assert every is not None
    assert (every[-1] == one).all()
    assert execute(runner, CopyPositions(0, 1, 2)) is None
    both = execute(runner, Decode((0, 1), (3, 3), (2, 2)))
    assert both is not None
    assert (both[0] == both[1]).all()


def test_several_prompts_are_executed_where_the_runner_takes_them() -> None:
    step = Prefills((TokenChunk(0, 0, (1, 2)), TokenChunk(1, 0, (1,))))
    both, one = execute(FakeGroupingRunner(), step), execute(FakeRunner(), Prefill(0, 0, (1,)))
    assert both is not None
    assert one is not None
    assert (both[1] == one).all()
    with pytest.raises(TypeError, match="FakeRunner cannot execute a step of the kind Prefills"):
        execute(FakeRunner(), step)


def test_a_runner_without_blocks_cannot_be_assigned_any() -> None:
    with pytest.raises(TypeError, match="FakeRunner cannot execute a step of the kind Assign"):
        execute(FakeRunner(), AssignBlocks(0, (1,)))


def test_a_runner_is_told_of_the_length_of_a_prompt_if_it_wants_to_know() -> None:
    execute(runner := FakeStretchingRunner(), Stretch(1, 20))
    assert runner.cache[1, 0] == 20
    with pytest.raises(TypeError, match="FakeRunner cannot execute a step of the kind Stretch"):
        execute(FakeRunner(), Stretch(0, 1))
