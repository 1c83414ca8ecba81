"""Steps of the sizes that an NPU captures, on the emulation of its operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.adapters.adapter import Adapter
from msx_llm.sampling.choice import TokenChoice
from msx_llm.step import UNREAD, TokenChunk
from tests.llm.flat_models import TOKENS, assert_near, emulation, make_flat
from tests.llm.peft_folders import make_adapter, room
from tests.llm.runners import limits
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

PLAIN = replace(limits(slots=(4,), contexts=(300,), prefills=(64,)), batch_total=4 * 384)
CAPTURED = replace(PLAIN, capture_buckets=(1, 3))
STARTS = (40, 9, 1, 22)
"""The lengths of the texts that are in the slots."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wide("qwen3", tmp_path_factory.mktemp("qwen3") / "model", max_position_embeddings=512)


@pytest.fixture
def switched(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    found: list[bool] = []
    monkeypatch.setattr(ms.runtime, "set_kernel_launch_capture", lambda on, skipped: found.append(on))
    return found


def filled(runner: Any) -> Any:
    for slot, length in enumerate(STARTS):
        runner.prefill(slot, 0, TOKENS[:length])
    return runner


def decoded(runner: Any, slots: list[int], nth: int) -> Any:
    places = [STARTS[slot] + nth for slot in slots]
    return runner.decode(slots, [TOKENS[place] for place in places], places)


def listen(operator: str, argument: str, found: list[Any]) -> Callable[[Any], None]:
    def note(call: Any) -> None:
        if call.operator == operator:
            found.append(call.arguments[argument])

    return note


def test_logits_are_those_of_steps_that_are_not_filled_up(model: Path, switched: list[bool]) -> None:
    """The second text of the last step is new to it, and the third one's keys are all there."""
    tables: list[Any] = []
    steps = [(0, [2, 0], 3), (1, [0], 1), (1, [2], 1), (2, [0, 2], 3), (0, [1], 1), (0, [3], 1)]
    with emulation(mutate=listen("PagedAttention", "block_tables", tables)):
        runner, plain = (filled(make_flat("qwen3", model, "float16", shape)) for shape in (CAPTURED, PLAIN))
        for nth, slots, size in steps:
            wanted = decoded(plain, slots, nth)
            tables.clear()
            assert_near(decoded(runner, slots, nth), wanted, "float16")
            assert {table.shape for table in tables} == {(size, 3)}
        assert_near(decoded(runner, [0, 1, 2, 3], 3), decoded(plain, [0, 1, 2, 3], 3), "float16")
    assert switched == [True, False], "off for the step of four texts"


def test_texts_with_adapters(model: Path, switched: list[bool], tmp_path: Path) -> None:
    """A filled-up step has the adapters of its texts, and a drafted token that of its text."""
    one, two = (Adapter(name, str(make_adapter(model, tmp_path / name, len(name)))) for name in ("a", "bb"))
    with emulation():
        runner, plain = (make_flat("qwen3", model, "float16", shape, adapters=room()) for shape in (CAPTURED, PLAIN))
        for slot, place, adapter in ((0, 1, one), (1, 0, None), (2, 2, two), (3, 1, one)):
            for each in (runner, plain):
                each.adapt(slot, place, adapter)
        filled(runner), filled(plain)
        for nth, slots in enumerate(([2, 0], [1], [0, 1])):
            assert_near(decoded(runner, slots, nth), decoded(plain, slots, nth), "float16")
        places = [STARTS[2] + 1, STARTS[2] + 2]
        drafted = runner.decode([2, 2], [TOKENS[place] for place in places], places)
        wanted = [plain.decode([2], [TOKENS[place]], [place])[0] for place in places]
        assert_near(drafted, np.stack(wanted), "float16")
        runner.adapt(2, 0, None)
        assert np.abs(runner.decode([2], [TOKENS[places[1]]], [places[1]])[0] - wanted[1]).max() > 0.1
    assert switched[:1] == [True]


def test_tokens_that_the_host_has_not_read(model: Path, switched: list[bool]) -> None:
    choices = [TokenChoice(), TokenChoice(presence=1.0)]
    found = []
    with emulation():
        for shape in (PLAIN, CAPTURED):
            runner = filled(make_flat("qwen3", model, "float16", shape))
            runner.recount(1, (), ())
            texts = [
                runner.start_mixed([TokenChunk(slot, STARTS[slot] + nth, (token,)) for slot in (3, 1)], choices)
                for nth, token in enumerate([5, UNREAD, UNREAD])
            ]
            found.append([finish().tolist() for finish in texts])
    assert found[0] == found[1]
    assert np.shape(found) == (2, 3, 2)
    assert switched == [True]


def test_the_largest_is_captured_first(model: Path, switched: list[bool]) -> None:
    said: list[str] = []
    kept: list[Any] = []
    with emulation(mutate=listen("ReshapeAndCache", "slot_mapping", kept)):
        make_flat("qwen3", model, "float16", CAPTURED).warm_up(said.append)
    assert said[-2:] == [f"decode of {size} texts, which is captured" for size in (3, 1)]
    assert [len(slots) for slots in kept[-8::2]] == [3, 3, 1, 1]
    assert max(int(slots.asnumpy().max()) for slots in kept) == -1
    assert switched == [True]
