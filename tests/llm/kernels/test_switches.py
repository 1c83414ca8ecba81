"""Forms of calls of which only a device can show the better one: which is taken, and by which variable the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.kernels.ascend.masks import caches_mask, mask_bytes
from msx_llm.kernels.ascend.switches import MASKS, ROTARY, ROUTERS
from msx_llm.models.registry import read_config
from msx_llm.step import TokenChunk
from msx_sdk.errors import HandlerLoadError
from tests.llm.flat_models import TOKENS, assert_near, emulation, make_flat
from tests.llm.runners import GOLDENS, limits, make_runner
from tests.llm.wide_models import make_wide

SHAPE = limits(slots=(3,), contexts=(128,), prefills=(64,))


@pytest.mark.parametrize("switch", [ROTARY, ROUTERS, MASKS], ids=lambda switch: switch.variable)
def test_a_switch_has_two_values(switch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(switch.variable, raising=False)
    assert switch.is_safer
    monkeypatch.setenv(switch.variable, switch.other)
    assert not switch.is_safer
    monkeypatch.setenv(switch.variable, "maybe")
    with pytest.raises(HandlerLoadError, match=rf"{switch.variable}=maybe: it is {switch.safer} \(the default\)"):
        assert switch.is_safer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mindspore").runtime.launch_blocking()
    return make_wide("qwen3", tmp_path_factory.mktemp("wide") / "model", num_hidden_layers=1, layer_types=None)


def chunk(slot: int, start: int, stop: int) -> TokenChunk:
    return TokenChunk(slot, start, tuple(TOKENS[start:stop]))


@pytest.mark.mindspore
def test_prompts_have_the_whole_table(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than the step has tokens; the other form is one that nobody's code has."""
    from tests.emulated_ascend.refused import Refused

    prompts, goes_on = [chunk(0, 0, 9), chunk(1, 0, 5)], [chunk(0, 9, 12), chunk(2, 0, 3)]
    with emulation() as calls:
        runner = make_flat("qwen3", model, "float16", SHAPE)
        for step in (prompts, goes_on):
            runner.mixed(step)
        first, second = calls.of("ApplyRotaryPosEmb")
    assert "cos=Float16 [128, 16]" in first
    assert "cos=Float16 [6, 16]" in second
    monkeypatch.setenv(ROTARY.variable, ROTARY.other)
    with emulation(), pytest.raises(Refused, match="it must be the whole table"):
        make_flat("qwen3", model, "float16", SHAPE).mixed(prompts)


@pytest.mark.mindspore
def test_masks_of_chunks_are_rows_of_one(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = make_runner("qwen3", SHAPE, folder=model).prefill(0, 0, TOKENS[:40], all_logits=True)[[39]]
    widths = []
    for value in (MASKS.safer, MASKS.other):
        monkeypatch.setenv(MASKS.variable, value)
        with emulation() as calls:
            runner = make_flat("qwen3", model, "float16", SHAPE)
            runner.prefill(0, 0, TOKENS[:30])
            assert_near(runner.mixed([chunk(0, 30, 40)]), wanted, "float16", np.abs(wanted).max())
            widths += ["[10, 128]" in call for call in calls.of("PagedAttention")]
    assert widths == [True, True], "the context, and a block"


def test_masks_that_are_made_in_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, windows, sinks = (read_config(GOLDENS / name) for name in ("qwen3", "gemma3", "gpt_oss"))
    assert caches_mask(plain, 8192)
    assert not caches_mask(plain, 8193)
    assert caches_mask(windows, 64), "of the layers without a window"
    assert not caches_mask(sinks, 64)
    assert mask_bytes(plain, 512, 8192) == 2 * (512 + 8192) * 8192
    assert mask_bytes(plain, 512, 16_384) == 5 * 512 * 16_384
    assert mask_bytes(windows, 512, 1024) == 2 * (512 + 1024) * 1024 + 5 * 512 * 1024


@pytest.mark.mindspore
def test_a_step_in_which_all_texts_begin_beyond_a_window_has_a_text_that_goes_on(tmp_path: Path) -> None:
    """Its rows of angles are those of tokens, which nobody's code passes where all texts begin."""
    pytest.importorskip("mindspore").runtime.launch_blocking()
    folder = make_wide("gemma3", tmp_path / "model")
    wanted = make_runner("gemma3", SHAPE, folder=folder).prefill(0, 0, TOKENS[:40], all_logits=True)[[39]]
    with emulation() as calls:
        runner = make_flat("gemma3", folder, "float16", SHAPE)
        assert_near(runner.mixed([chunk(0, 0, 40)]), wanted, "float16", np.abs(wanted).max())
        assert all("cos=Float16 [42, 16]" in call for call in calls.of("ApplyRotaryPosEmb"))


@pytest.mark.mindspore
def test_routers_multiply_in_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16 tokens get other experts; the numbers are in docs/ascend.md."""
    ms = pytest.importorskip("mindspore")
    from msx_llm.kernels.ascend.experts import SoftmaxRouter
    from msx_llm.models.experts import ExpertsConfig

    random = np.random.default_rng(0)
    tokens, hidden, experts = 256, 512, ExpertsConfig(count=128, chosen=8, inner=1, layers=(True,), normed=True)
    x = ms.Tensor(random.standard_normal((tokens, hidden)).astype(np.float32)).astype(ms.bfloat16)
    weight = ms.Tensor(random.standard_normal((128, hidden)).astype(np.float32) / 22).astype(ms.bfloat16)
    exact = x.astype(ms.float32).asnumpy().astype(np.float64) @ weight.astype(ms.float32).asnumpy().T.astype(np.float64)
    wanted = [set(row) for row in np.argsort(-exact)[:, :8].tolist()]
    others = []
    for value in (ROUTERS.safer, ROUTERS.other):
        monkeypatch.setenv(ROUTERS.variable, value)
        with emulation():
            router = SoftmaxRouter(hidden, experts, ms.bfloat16)
            router.weight.set_data(weight.astype(router.weight.dtype))
            weights, chosen = router(x)
        assert weights.dtype == ms.bfloat16
        others.append(sum(len(own - set(row)) for own, row in zip(wanted, chosen.asnumpy().tolist(), strict=True)))
    assert others[0] == 0
    assert 0 < others[1] < 64, f"{others[1]} of {tokens * 8}"
