"""The whole decoder through the operators of an NPU, emulated, beside the CPU's runner, which the goldens hold against
transformers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.sampling.choice import TokenChoice
from msx_llm.step import UNREAD, Mixed, TokenChunk, decode, encode
from msx_llm.step_runner import ChoosingRunner
from msx_sdk.errors import HandlerLoadError
from tests.llm.flat_models import TOKENS, assert_near, emulation, make_flat
from tests.llm.runners import FAMILIES, LIKE_OTHERS, all_logits, limits, make_runner, some
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")


@pytest.fixture(autouse=True, scope="module")
def _launch_blocking() -> None:
    ms.runtime.launch_blocking()


@pytest.mark.parametrize(
    ("family", "dtype"),
    [*some(FAMILIES, *LIKE_OTHERS), pytest.param("llama", "bfloat16", marks=pytest.mark.long), ("qwen3", "bfloat16")],
)
def test_logits_are_those_of_a_cpu(family: str, dtype: str, tmp_path: Path) -> None:
    """Logits of tokens that came in chunks, the second one after what the cache holds, and one by one."""
    model, tokens = make_wide(family, tmp_path / "model"), TOKENS[:40]
    wanted = all_logits(make_runner(family, limits(), folder=model), tokens, slot=1, chunks=(16, 13))
    with emulation():
        runner = make_flat(family, model, dtype)
        runner.warm_up(lambda graph: None)
        assert_near(all_logits(runner, tokens, slot=1, chunks=(16, 13)), wanted, dtype)


def test_activations_above_256_do_not_overflow(tmp_path: Path) -> None:
    model, tokens = make_wide("llama", tmp_path / "model", loud=True), TOKENS[:20]
    wanted = all_logits(make_runner("llama", limits(), folder=model), tokens, slot=0, chunks=(16,))
    with emulation():
        assert_near(all_logits(make_flat("llama", model, "float16"), tokens, 0, (16,)), wanted, "float16")


SHAPE = replace(limits(slots=(4,), contexts=(300,), prefills=(200,)), batch_total=4 * 384)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wide("qwen3", tmp_path_factory.mktemp("qwen3") / "model", max_position_embeddings=512)


@pytest.fixture(scope="module")
def wanted(model: Path) -> Any:
    """Logits of every token, by a CPU."""
    return make_runner("qwen3", SHAPE, folder=model).prefill(0, 0, TOKENS[:200], all_logits=True)


def test_prompts_chunks_and_single_tokens_mix(model: Path, wanted: Any) -> None:
    with emulation() as calls:
        runner = make_flat("qwen3", model, "float16", SHAPE)
        runner.prefill(0, 0, TOKENS[:150])
        runner.prefill(1, 0, TOKENS[:30])
        chunks = [chunk(1, 30, 31), chunk(3, 0, 20), chunk(0, 150, 190), chunk(2, 0, 1)]
        found = runner.mixed(chunks)
        assert_near(found, wanted[[30, 19, 189, 0]], "float16")
        assert len(calls.of("PagedAttention")) == 2, "one for each layer"
        assert len(calls.of("FlashAttentionScore")) == 4


@pytest.mark.parametrize("key", [True, False])
def test_who_chooses_tokens_is_a_key(model: Path, key: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs that are not wanted are not compiled either."""
    asked: list[Any] = []
    with emulation():
        runner = make_flat("qwen3", model, "float16", SHAPE, chooses=key)
        choose = runner._chosen._chooser

        def noted(logits: Any, choices: Any) -> Any:
            asked.extend(choices)
            return choose(logits, choices)

        monkeypatch.setattr(runner._chosen, "_chooser", noted)
        runner.warm_up(lambda graph: None)
    assert runner.chooses is key
    assert [choice.temperature for choice in asked] == ([0.0, 1.0] if key else []), "both graphs"
    assert not isinstance(make_runner("qwen3", SHAPE, folder=model), ChoosingRunner), "a CPU's logits are on the host"


def test_tokens_that_the_host_has_not_read(model: Path) -> None:
    """Beside a prompt, and in another order than they were chosen in."""
    choices = [TokenChoice(), TokenChoice(1.0, 5, 0.9, 0.0, 0.7)]
    with emulation():
        runner = make_flat("qwen3", model, "float16", SHAPE)
        first = runner.start_mixed([chunk(1, 0, 30), chunk(3, 0, 20)], choices)
        unread = runner.start_mixed([TokenChunk(3, 20, (UNREAD,)), chunk(0, 0, 9), TokenChunk(1, 30, (UNREAD,))])
        one, three = (int(id) for id in first())
        known = runner.mixed([TokenChunk(3, 20, (three,)), chunk(0, 0, 9), TokenChunk(1, 30, (one,))])
        np.testing.assert_array_equal(unread(), known)
        with pytest.raises(ValueError, match="slot 2: the step before has not chosen a token for it"):
            runner.mixed([TokenChunk(2, 5, (UNREAD,))])


def test_several_prompts_are_one_pass_over_their_own_keys(model: Path, wanted: Any) -> None:
    with emulation() as calls:
        runner = make_flat("qwen3", model, "float16", SHAPE)
        found = runner.mixed([chunk(2, 0, 40), chunk(0, 0, 7), chunk(1, 0, 1)])
        assert_near(found, wanted[[39, 6, 0]], "float16")
        assert (len(calls.of("PagedAttention")), len(calls.of("FlashAttentionScore"))) == (0, 2)


def test_a_layer_is_the_operators_that_passes_look_for(model: Path) -> None:
    """One product for q, k and v, and one for gate and up, each split behind it; one operator for rotary positions."""
    with emulation() as calls:
        runner = make_flat("qwen3", model, "float16", SHAPE)
        before = len(calls.calls)
        runner.mixed([chunk(0, 0, 4)])
        names = Counter(call.partition("(")[0] for call in calls.calls[before:])
    layers = 2
    wanted = {"MatMul": 4, "SplitWithSize": 2, "ApplyRotaryPosEmb": 1, "SiLU": 1, "Mul": 1, "RmsNorm": 4}
    outside = {"MatMul": 1, "RmsNorm": 1}
    assert {name: names[name] for name in wanted} == {
        name: layers * count + outside.get(name, 0) for name, count in wanted.items()
    }
    assert not any("transpose_b=False" in call for call in calls.of("MatMul"))


def chunk(slot: int, start: int, stop: int) -> TokenChunk:
    return TokenChunk(slot, start, tuple(TOKENS[start:stop]))


def test_steps_that_are_too_large(model: Path) -> None:
    with emulation():
        runner = make_flat("qwen3", model, "float16", SHAPE)
    with pytest.raises(ValueError, match="205 tokens of a step: there must be 1 to 204"):
        runner.prefill(0, 0, TOKENS[:205])
    with pytest.raises(ValueError, match="0 tokens of a step"):
        runner.prefill(0, 0, [])
    with pytest.raises(ValueError, match="5 slots: there must be 1 to 4"):
        runner.decode(range(5), [1] * 5, [0] * 5)
    with pytest.raises(ValueError, match="position 300: the context has 300 positions"):
        runner.decode([0], [1], [300])


@pytest.mark.parametrize(("ends", "kernels"), [((12, 5), (0, 2)), ((13, 5), (2, 0))])
def test_what_is_longer_than_a_window_has_masks(
    ends: tuple[int, int], kernels: tuple[int, int], tmp_path: Path
) -> None:
    """Prompts as long as the window are read without. All of a step has masks where one text needs them, and then two
    tokens of one more text, since masks of single tokens are ignored."""
    model = make_wide("mistral", tmp_path / "model", num_hidden_layers=2)
    one = make_runner("mistral", limits(prefills=(64,)), folder=model).prefill(0, 0, TOKENS[:20], all_logits=True)
    with emulation() as calls:
        runner = make_flat("mistral", model, "float16")
        found = runner.mixed([chunk(slot, 0, end) for slot, end in enumerate(ends)])
        assert_near(found, one[[end - 1 for end in ends]], "float16", np.abs(one).max())
        assert (len(calls.of("PagedAttention")), len(calls.of("FlashAttentionScore"))) == kernels
        found = runner.mixed([chunk(slot, end, end + 1) for slot, end in enumerate(ends)])
        assert_near(found, one[list(ends)], "float16", np.abs(one).max())
        assert "q_seq_lens=Int32 [3]" in calls.of("PagedAttention")[-1]


def test_steps_with_sinks_are_not_captured(tmp_path: Path) -> None:
    model, captured = make_wide("gpt_oss", tmp_path / "model"), replace(limits(), capture_buckets=(1, 2))
    with pytest.raises(HandlerLoadError, match=r"captureBuckets: .* all steps of gpt_oss have masks"):
        make_flat("gpt_oss", model, "float16", captured)


def test_a_step_is_data() -> None:
    step = Mixed((TokenChunk(1, 30, (5,)), TokenChunk(0, 0, (1, 2))))
    assert decode(encode(step)) == step


@pytest.mark.parametrize("pins", [False, True])
def test_inputs_of_an_npu_are_pinned(pins: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from msx_llm.kernels.ascend.flat_runner import host_tensor

    monkeypatch.setattr(ms.Tensor, "pin_memory", lambda tensor: ("pinned", tensor.asnumpy().tolist()))
    made = host_tensor(np.array([3, 1]), pins)
    if pins:
        assert made == ("pinned", [3, 1])
    else:
        assert (made.dtype, made.asnumpy().tolist()) == (ms.int32, [3, 1])
