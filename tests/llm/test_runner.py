"""Steps on one rank; on several: test_runner_ranks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.limits import EngineLimits
from msx_llm.step import TokenChunk
from msx_sdk.errors import HandlerLoadError
from tests.llm.runners import GOLDENS, compiled_graphs, expected, limits, make_runner

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

TOKENS, LOGITS = expected("llama")
SLOTS, CONTEXT = 5, 100
CLOSE = 1e-4


@pytest.fixture(scope="module")
def runner() -> Any:
    """With graphs, of which it has compiled all."""
    ms.runtime.launch_blocking()
    runner = make_runner("llama", limits(slots=(SLOTS,), contexts=(64, CONTEXT), prefills=(32,)), graphs=True)
    runner.warm_up(lambda graph: None)
    return runner


def test_its_sizes(runner: Any) -> None:
    assert (runner.vocab_size, runner.slots, runner.context, runner.prefill_size) == (96, SLOTS, CONTEXT, 32)


def steps_of_all_sizes(runner: Any) -> None:
    for start, length in ((0, 1), (1, 8), (9, 9), (18, 32), (50, 32)):
        runner.prefill(0, start, TOKENS[:length], all_logits=length == 9)
    for slots in ([0], [3, 1], [4, 3, 2, 1, 0]):
        for position in (0, 63, 64, CONTEXT - 1):
            runner.decode(slots, [1] * len(slots), [position] * len(slots))
    runner.copy(0, 1, 50)


def test_nothing_is_compiled_after_warm_up(runner: Any) -> None:
    before = compiled_graphs()
    assert before
    steps_of_all_sizes(runner)
    assert compiled_graphs() == before


def test_warm_up_has_the_shapes_of_all_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph is compiled for each; here, cells run without."""
    runner = make_runner("llama", limits(slots=(1, SLOTS), contexts=(64, CONTEXT), prefills=(8, 32)))
    seen, told = noted_shapes(runner, monkeypatch), list[str]()
    runner.warm_up(told.append)
    assert told[0] == "decode 1 × 64 (1 of 10)"
    assert told[3] == "decode 5 × 128 (4 of 10)"
    assert told[-1] == "prefill 32 × 128, all logits (10 of 10)"
    warm = set(seen)
    assert len(warm) == 4 + 4 + 4, "decode; chunks; heads of one token and of all"
    seen.clear()
    steps_of_all_sizes(runner)
    assert len(seen) > 8
    assert seen <= warm


@pytest.mark.parametrize("family", ["qwen3_next", "qwen3_5_text", "gemma4", "deepseek_v3", "gpt_oss"])
def test_families_compute_the_padding_of_all_shapes(family: str) -> None:
    """Prompts are computed together where the family's cells can do that."""
    runner, told = make_runner(family, limits(slots=(1, 2, 4), prefills=(16, 64))), list[str]()
    runner.warm_up(told.append)
    assert any(name.startswith("prefill 2 × 16") for name in told) is not runner.keeps_states
    chunks = [TokenChunk(slot, 0, (5, 6 + slot, 7)) for slot in range(3)]
    wanted = [runner.prefill(chunk.slot, 0, chunk.tokens) for chunk in chunks]
    np.testing.assert_allclose(runner.prefills(chunks), wanted, atol=1e-4)


def noted_shapes(runner: Any, monkeypatch: pytest.MonkeyPatch) -> set[tuple[Any, ...]]:
    """Shapes of what its graphs are given from now on."""
    seen = set[tuple[Any, ...]]()

    def noted(name: str, run: Any) -> Any:
        def call(*inputs: Any) -> Any:
            seen.add((name, *(tuple(it.shape) for it in inputs)))
            return run(*inputs)

        return call

    for name in ("_body", "_head", "_step"):
        monkeypatch.setattr(runner._graphs, name, noted(name, getattr(runner._graphs, name)))
    return seen


@pytest.mark.parametrize(
    ("first", "last", "between"),
    [
        (64, 64, []),
        (64, 128, []),
        (64, 320, [128]),
        (512, 2304, [1024]),
        (512, 4096, [1024, 2048]),
        (512, 1 << 17, [4096, 32768]),
    ],
)
def test_chunks_of_long_prompts_read_no_more_than_about_what_is_there(
    first: int, last: int, between: list[int]
) -> None:
    from msx_llm.kernels.cpu.shapes import contexts_between

    assert contexts_between(first, last) == between


def test_a_runner_with_its_first_graphs_makes_the_same_logits_as_with_all() -> None:
    from msx_llm.step import TokenChunk

    one = make_runner("llama", limits(slots=(1, 3), contexts=(64, 128), prefills=(8, 64)))
    both = [TokenChunk(0, 0, tuple(TOKENS[:7])), TokenChunk(2, 0, tuple(TOKENS[:8]))]
    names: list[str] = []
    one.warm_up_first(names.append)
    assert len(names) == 4
    assert one.uncompiled == 7
    while True:
        np.testing.assert_allclose(one.prefill(0, 0, TOKENS[:30]), LOGITS[29], atol=CLOSE)
        np.testing.assert_allclose(one.decode([0], [TOKENS[30]], [30])[0], LOGITS[30], atol=CLOSE)
        np.testing.assert_allclose(one.prefill(1, 0, TOKENS[:6], all_logits=True), LOGITS[:6], atol=CLOSE)
        np.testing.assert_allclose(one.prefills(both), LOGITS[[6, 7]], atol=CLOSE)
        if not one.uncompiled:
            break
        one.compile_next()


def test_a_prompt_whose_chunks_have_several_contexts() -> None:
    one = make_runner("llama", limits(slots=(1,), contexts=(64, 320), prefills=(8, 32)))
    tokens = (*TOKENS, *TOKENS)
    last = {size: [one.prefill(0, n, tokens[n : n + size]) for n in range(0, 96, size)][-1] for size in (8, 32)}
    np.testing.assert_allclose(last[32], last[8], atol=CLOSE)
    assert [shape.name for shape in one._shapes.all if shape.kind == "prefill"] == [
        *("prefill 8 × 64", "prefill 8 × 320", "prefill 8 × 320, all logits"),
        *("prefill 32 × 64", "prefill 32 × 128", "prefill 32 × 320", "prefill 32 × 320, all logits"),
    ]


def test_several_prompts_in_one_step() -> None:
    from msx_llm.step import TokenChunk

    one = make_runner("llama", limits(slots=(1, 2, 4), contexts=(64, 128), prefills=(8, 32)))
    one.prefill(1, 0, TOKENS[:5])
    chunks = [TokenChunk(3, 0, tuple(TOKENS[:8])), TokenChunk(1, 5, tuple(TOKENS[5:9])), TokenChunk(0, 0, (TOKENS[0],))]
    np.testing.assert_allclose(one.prefills(chunks), LOGITS[[7, 8, 0]], atol=CLOSE)
    np.testing.assert_allclose(one.decode([1], [TOKENS[9]], [9])[0], LOGITS[9], atol=CLOSE)
    long = [TokenChunk(slot, 0, tuple(TOKENS[:20])) for slot in (0, 2)]  # no step holds both
    np.testing.assert_allclose(one.prefills(long), LOGITS[[19, 19]], atol=CLOSE)


@pytest.mark.parametrize("length", [1, 30])
def test_a_copied_prefix_goes_on_like_its_source(runner: Any, length: int) -> None:
    runner.prefill(0, 0, TOKENS[:30])
    runner.prefill(4, 0, TOKENS[10:40])
    runner.copy(0, 4, length)
    np.testing.assert_allclose(runner.prefill(4, length, TOKENS[length:31]), LOGITS[30], atol=CLOSE)
    np.testing.assert_allclose(runner.prefill(0, 30, TOKENS[30:31]), LOGITS[30], atol=CLOSE)  # the source is whole


def test_steps_that_fit_no_bucket(runner: Any) -> None:
    with pytest.raises(ValueError, match="33 tokens of a prefill: there must be 1 to 32"):
        runner.prefill(0, 0, TOKENS[:33])
    with pytest.raises(ValueError, match="0 tokens of a prefill"):
        runner.prefill(0, 0, [])
    with pytest.raises(ValueError, match="6 slots: there must be 1 to 5"):
        runner.decode(range(6), [1] * 6, [0] * 6)
    with pytest.raises(ValueError, match="position 100: the context has 100 positions"):
        runner.decode([0], [1], [CONTEXT])


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ({"tp_size": 3}, "num_key_value_heads: 2 cannot be divided evenly over tensorParallel: 3 ranks"),
        ({"tp_size": 8}, "num_attention_heads: 4 cannot be divided evenly over tensorParallel: 8 ranks"),
        ({"stages": 3}, "2 layers cannot be divided into 3 pipeline stages; parallel: pipelineStages must be less"),
    ],
)
def test_a_model_that_cannot_be_divided_so(split: dict[str, Any], message: str) -> None:
    from msx_sdk.mindspore.parallel import Parallel

    with pytest.raises(HandlerLoadError) as caught:
        make_runner("llama", limits(), Parallel(**split))
    assert message in str(caught.value)


@pytest.mark.parametrize("rank", range(4))
def test_ranks_have_the_same_key_value_head_where_there_are_more_ranks(rank: int) -> None:
    from msx_llm.kernels.cpu.factory import CpuKernels
    from msx_llm.models.decoder import Decoder
    from msx_llm.models.parts import DecoderParts
    from msx_llm.models.registry import read_config
    from msx_llm.models.weights import Checkpoint
    from msx_sdk.mindspore import collectives
    from msx_sdk.mindspore.parallel import Parallel

    parallel, config = Parallel(rank, tp_size=4), read_config(GOLDENS / "llama_biased")
    collectives.register(parallel.world_group, range(4))
    with Checkpoint(GOLDENS / "llama_biased", config) as checkpoint:
        whole = checkpoint.read("model.layers.1.self_attn.k_proj.weight")
        decoder = Decoder(config, DecoderParts(parallel, CpuKernels()), range(2))
        decoder.load(checkpoint)
    head, k_proj = slice(rank // 2 * 8, (rank // 2 + 1) * 8), decoder.body.layers[1].self_attn.qkv.linears[1]
    np.testing.assert_array_equal(k_proj.weight.asnumpy(), whole.astype(np.float32)[head].T)
    assert k_proj.bias.shape == (8,)


def test_a_model_that_sees_both_ways_cannot_generate(tmp_path: Path) -> None:
    shutil.copytree(GOLDENS / "llama", tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text()) | {"is_causal": False}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    with pytest.raises(HandlerLoadError, match=r"is_causal: false: .*; serve it with --handler embedding"):
        make_runner("llama", limits(), folder=tmp_path / "model")


def test_limits_follow_from_what_the_weights_take() -> None:
    """They are asked for once the weights are there, as a device can say only then what room is left."""
    from msx_llm.models.registry import read_config
    from msx_llm.runner import load_runner
    from msx_sdk.mindspore.parallel import Parallel

    asked: list[int] = []

    def plan(weights: int) -> EngineLimits:
        asked.append(weights)
        return limits()

    runner = load_runner(GOLDENS / "llama", read_config(GOLDENS / "llama"), plan, Parallel())
    assert runner.limits == limits()
    layer = 2 * 32 * 32 + 2 * 16 * 32 + 3 * 32 * 48 + 2 * 32
    assert asked == [4 * (96 * 32 + 2 * layer + 32)]  # embedding and head are one weight
