from __future__ import annotations

import pytest

from msx_llm.kernels.cpu.extent import extent
from msx_llm.kernels.cpu.shapes import StepShape, StepShapes


@pytest.fixture
def shapes() -> StepShapes:
    return StepShapes((1, 4, 16), (64, 512), (32, 128), extent)


def names(shapes: list[StepShape]) -> list[str]:
    return [shape.name for shape in shapes]


def test_a_step_has_the_smallest_shape_that_holds_it(shapes: StepShapes) -> None:
    assert shapes.decode(1, 64).name == "decode 1 × 64"
    assert shapes.decode(2, 65).name == "decode 4 × 512"
    assert shapes.prefill(10, 20, False).name == "prefill 32 × 64"
    assert shapes.prefill(33, 40, True).name == "prefill 128 × 128, all logits"


def test_a_part_of_a_prompt_attends_to_the_first_context_that_holds_it() -> None:
    shapes = StepShapes((1,), (64, 128, 256, 512), (16, 32, 128), extent)
    assert [shapes.prefill(16, end, False).context for end in (16, 64, 65, 129, 257)] == [64, 64, 128, 256, 512]
    assert [shapes.prefill(128, end, False).context for end in (128, 129, 257)] == [128, 256, 512]


def test_a_small_part_of_a_prompt_attends_to_the_first_or_the_last_context() -> None:
    shapes = StepShapes((1,), (256, 512, 1024), (16, 128, 512), extent)
    assert [shapes.prefill(16, end, False).context for end in (16, 257, 513)] == [256, 1024, 1024]
    assert [shapes.prefill(128, end, False).context for end in (128, 257, 513)] == [256, 512, 1024]


def test_a_whole_chunk_attends_to_no_more_than_itself() -> None:
    shapes = StepShapes((1,), (256, 1024, 2048), (16, 32, 128, 512), extent)
    assert [shapes.prefill(512, end, False).context for end in (512, 513, 1025)] == [512, 1024, 2048]
    assert shapes.prefill(300, 300, False).context == 512


def test_what_no_shape_holds_is_refused(shapes: StepShapes) -> None:
    with pytest.raises(ValueError, match="17 slots: there must be 1 to 16"):
        shapes.decode(17, 1)
    with pytest.raises(ValueError, match="513 positions: there must be 1 to 512"):
        shapes.decode(1, 513)
    with pytest.raises(ValueError, match="0 tokens of a prefill: there must be 1 to 128"):
        shapes.prefill(0, 1, False)


def test_the_first_shapes_hold_every_step_and_one_text(shapes: StepShapes) -> None:
    assert names(shapes.leave()) == [
        "decode 16 × 512",
        "decode 1 × 512",
        "prefill 128 × 512",
        "prefill 128 × 512, all logits",
    ]
    assert shapes.decode(1, 10).name == "decode 1 × 512"
    assert shapes.decode(2, 10).name == "decode 16 × 512"
    assert shapes.prefill(3, 10, False).name == "prefill 128 × 512"
    assert shapes.prefill(3, 10, True).name == "prefill 128 × 512, all logits"


def test_each_shape_is_used_once_it_is_compiled_and_in_the_end_all_are(shapes: StepShapes) -> None:
    first = shapes.leave()
    every = set(first) | set(shapes.later)
    assert every == set(shapes.all)
    for shape in list(shapes.later):
        used = shapes.decode(shape.size, shape.context) if shape.kind == "decode" else shape
        assert used != shape or shape.kind == "prefill"
        shapes.compiled(shape)
        if shape.kind == "decode":
            assert shapes.decode(shape.size, shape.context) == shape
        elif shape.texts > 1:
            assert shapes.prefills(shape.texts, shape.size, shape.context) == shape
        else:
            assert shapes.prefill(shape.size, shape.context, shape.every) == shape
    assert not shapes.later


def test_several_prompts_have_as_many_tokens_as_the_largest_prefill_at_most(shapes: StepShapes) -> None:
    assert names([shape for shape in shapes.all if shape.texts > 1]) == ["prefill 4 × 32 × 64"]
    assert shapes.prefills(2, 20, 64) == StepShape("prefill", 32, 64, texts=4)
    assert shapes.prefills(4, 20, 65) is None, "they go on behind what is in the cache: one after the other"
    assert shapes.prefills(5, 20, 64) is None
    assert shapes.prefills(2, 33, 64) is None


def test_several_prompts_wait_for_a_graph_that_holds_them(shapes: StepShapes) -> None:
    shapes.leave()
    assert shapes.prefills(2, 20, 30) is None
    shapes.compiled(StepShape("prefill", 32, 64, texts=4))
    assert shapes.prefills(2, 20, 30) == StepShape("prefill", 32, 64, texts=4)


def test_logits_of_all_tokens_wait_for_a_graph_of_their_own(shapes: StepShapes) -> None:
    shapes.leave()
    shapes.compiled(StepShape("prefill", 32, 64))
    assert shapes.prefill(3, 10, False).name == "prefill 32 × 64"
    assert shapes.prefill(3, 10, True).name == "prefill 128 × 512, all logits"
