"""The trial of the largest step, on the emulation, with figures of memory as a device would say them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from msx_core.config import parse_model_config
from msx_core.mindspore import graph_cache
from msx_llm import measured_plan
from msx_llm.measured_plan import CacheBytes, MeasuredPlan
from msx_sdk.context import Context, ModelInfo
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel
from tests.llm.flat_models import TOKENS, emulation, make_flat
from tests.llm.runners import eager, limits
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

SHAPE = replace(limits(slots=(1, 4), contexts=(300,), prefills=(32, 64)), batch_total=4 * 384)
MIB = 1 << 20


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wide("qwen3", tmp_path_factory.mktemp("qwen3") / "model", max_position_embeddings=512)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Figures of a device, and what was called."""
    state = SimpleNamespace(most=0, called=[])
    monkeypatch.setattr(ms.runtime, "reset_max_memory_allocated", lambda: state.called.append("reset"))
    monkeypatch.setattr(ms.runtime, "max_memory_allocated", lambda: state.most)
    monkeypatch.setattr(ms.runtime, "empty_cache", lambda: state.called.append("empty"))
    return state


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Each step's kind, tokens, texts, columns of tables, rows of logits and blocks, whether it kept anything, and
    whether tokens were chosen."""
    from msx_llm.kernels.ascend.choosing import TokenChooser
    from msx_llm.kernels.ascend.graphs import FlatGraphs

    ran: list[tuple[Any, ...]] = []
    step, choose = FlatGraphs.__call__, TokenChooser.__call__

    def noted(graphs: Any, kind: int, *inputs: Any) -> Any:
        x, _, _, slots, tables, lengths, _, _, rows, _ = inputs
        kept = bool((slots.asnumpy() >= 0).any())
        ran.append((kind, len(x), *tables.shape, int(lengths.max()), len(rows), len(graphs.keys[0]), kept))
        return step(graphs, kind, *inputs)

    def chosen(chooser: Any, logits: Any, choices: Any) -> Any:
        ran.append(("chosen", len(choices), [choice.temperature for choice in choices]))
        return choose(chooser, logits, choices)

    monkeypatch.setattr(FlatGraphs, "__call__", noted)
    monkeypatch.setattr(TokenChooser, "__call__", chosen)
    return ran


def plan_of(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> MeasuredPlan:
    def measured(yaml: object, parallel: object, used: int) -> int:
        asked.append(used)
        return 4 * MIB

    monkeypatch.setattr(measured_plan, "measured_budget", measured)
    keys = {"slotBuckets": [1, 4], "maxTotalTokens": 300, "maxBatchPrefillTokens": 64, "prefillBuckets": [32, 64]}
    yaml, context = parse_model_config(keys)[0], Context(ModelInfo("m", model_dir=Path("/")))
    return MeasuredPlan(context, yaml, Parallel(target="Ascend"), 512, CacheBytes(256, 0), 7)


def loaded(model: Path, plan: Any, chooses: bool = True) -> Any:
    from msx_llm.kernels.ascend.factory import AscendKernels
    from msx_llm.models.registry import read_config
    from msx_llm.runner import load_runner
    from msx_sdk.mindspore import collectives

    parallel = eager(Parallel())
    collectives.register(parallel.world_group, (0,))
    return load_runner(model, read_config(model), plan, parallel, AscendKernels(ms.float16), chooses=chooses)


@pytest.mark.parametrize("chooses", [True, False])
def test_the_largest_steps_are_tried_in_one_block(
    model: Path, device: SimpleNamespace, steps: list[Any], chooses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many tokens of a prompt and other texts as a step takes, at the end of a whole context of 300, which is 3
    blocks; then all logits of a prompt."""
    with emulation():
        loaded(model, plan_of([], monkeypatch), chooses)
    first, last = (1, 64 + 3, 4, 3, 300, 4, 1, False), (1, 64, 1, 3, 300, 64, 1, False)
    assert steps == [first, *([("chosen", 4, [1.0] * 4)] if chooses else []), last]


def test_limits_follow_from_what_the_device_held_at_most(
    model: Path, device: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    device.most = 900 * MIB
    with emulation():
        runner = loaded(model, plan_of(asked, monkeypatch))
    assert asked[1:] == [900 * MIB + 7]
    assert 7 < asked[0] < MIB, "the weights"
    assert device.called == ["reset", "empty"], "memory of the step's sizes is given back"
    assert runner.limits.slots == 4


def test_all_graphs_are_kept_where_those_of_the_trial_are(
    model: Path, device: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MindSpore takes no other folder after its first graph: what was not kept before would be compiled each time."""
    monkeypatch.setattr(measured_plan, "keep_graphs", lambda context, key: device.called.append(f"folder of {key}"))
    monkeypatch.setattr(graph_cache, "settle", device.called.append)
    with emulation():
        runner = loaded(model, plan_of([], monkeypatch))
    kept = str(runner.limits)
    assert device.called == [f"folder of {kept}", "reset", "empty", kept]


def test_a_device_that_says_nothing_has_the_weights(
    model: Path, device: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    with emulation():
        loaded(model, plan_of(asked, monkeypatch))
    assert asked[0] == asked[1]


def test_nothing_is_tried_where_the_yaml_gives_a_number(model: Path, steps: list[Any]) -> None:
    with emulation():
        make_flat("qwen3", model, "float16", SHAPE)
    assert steps == []


def test_texts_are_right_behind_a_trial(model: Path, device: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of angles and masks are the decoder's, which two runners have prepared."""
    with emulation():
        wanted = make_flat("qwen3", model, "float16", SHAPE).prefill(0, 0, TOKENS[:40])
        runner = loaded(model, plan_of([], monkeypatch))
        runner.assign(0, [1, 2, 3])
        np.testing.assert_array_equal(runner.prefill(0, 0, TOKENS[:40]), wanted)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Device(id:0) memory isn't enough and alloc failed, kernel name: Sort-op1, alloc size: 9728000B."),
        RuntimeError("Out of Memory!!! Request memory size: 9728000B, Memory Statistic: …"),
    ],
)
def test_a_step_for_which_there_is_no_memory(
    model: Path, device: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, error: RuntimeError
) -> None:
    fails(monkeypatch, error)
    with emulation(), pytest.raises(HandlerLoadError) as caught:
        loaded(model, plan_of([], monkeypatch))
    assert str(caught.value) == (
        "the largest step, 64 tokens of prompts and one token of each of 4 texts, does not fit the device beside the "
        f"weights: give a smaller maxBatchPrefillTokens or fewer texts by slotBuckets (RuntimeError: {error})"
    )


def test_other_errors_are_shown_as_they_are(
    model: Path, device: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails(monkeypatch, RuntimeError("no kernel of this type"))
    with emulation(), pytest.raises(RuntimeError, match="no kernel of this type"):
        loaded(model, plan_of([], monkeypatch))


def fails(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    from msx_llm.kernels.ascend.graphs import FlatGraphs

    def step(graphs: Any, kind: int, *inputs: Any) -> Any:
        raise error

    monkeypatch.setattr(FlatGraphs, "__call__", step)
