"""Every family against Hugging Face transformers: tests/goldens/llm is made by tests/goldens/make_llm.py."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llm.runners import (
    FAMILIES,
    GOLDENS,
    ON_CPUS,
    PARTS,
    VARIANTS,
    all_logits,
    expected,
    limits,
    make_runner,
    quick,
)

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")


@pytest.fixture(autouse=True, scope="module")
def _launch_blocking() -> None:
    ms.runtime.launch_blocking()


@pytest.mark.parametrize("family", [*FAMILIES, *ON_CPUS])
def test_logits_are_those_of_transformers(family: str) -> None:
    """Logits of tokens that came in chunks, each but the first after what the cache holds, and one by one."""
    tokens, logits = expected(family)
    runner = make_runner(family, limits())
    np.testing.assert_allclose(all_logits(runner, tokens, slot=1, chunks=(16, 13, 12)), logits, atol=1e-4)


def test_kimi_k2_has_the_logits_of_a_deepseek_v3(tmp_path: Path) -> None:
    shutil.copytree(GOLDENS / "deepseek_v3", tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | {"model_type": "kimi_k2"}))
    tokens, logits = expected("deepseek_v3")
    runner = make_runner("kimi_k2", limits(), folder=tmp_path / "model")
    np.testing.assert_allclose(all_logits(runner, tokens, slot=1, chunks=(16,)), logits, atol=1e-4)


DISTINCT = ("glm4", "gemma3", "gemma4", "gemma4_experts", "gpt_oss", "qwen2_moe", "deepseek_v3", "qwen3_next")
"""Families that have all kinds of cells between them; test_runner has llama's graphs, embedding/test_network those of
qwen3."""


@pytest.mark.parametrize("family", quick([*FAMILIES, *ON_CPUS], *DISTINCT))
def test_a_graph_has_the_logits_of_transformers(family: str) -> None:
    """Code that runs without a graph may not compile. One graph reads all tokens, one by one."""
    tokens, logits = expected(family)
    runner = make_runner(family, limits(), graphs=True)
    np.testing.assert_allclose(all_logits(runner, tokens, slot=1, chunks=()), logits, atol=1e-4)


@pytest.mark.parametrize("model", sorted(folder.name for folder in PARTS.iterdir()))
def test_text_parts_have_the_logits_of_transformers(model: str) -> None:
    golden = np.load(PARTS / model / "expected.npz")
    runner = make_runner(model, limits(), folder=PARTS / model)
    found = all_logits(runner, golden["tokens"].tolist(), slot=1, chunks=(16, 13))
    np.testing.assert_allclose(found, golden["logits"], atol=1e-4)


def test_experts_in_two_tensors_lie_otherwise_on_the_hub(tmp_path: Path) -> None:
    """[experts, in, out], where transformers 5 saves [experts, out, in]."""
    from safetensors.numpy import load_file, save_file

    from msx_sdk.errors import HandlerLoadError

    golden, source = np.load(PARTS / "qwen3_vl_moe" / "expected.npz"), PARTS / "qwen3_vl_moe"
    tensors = load_file(source / "model.safetensors")
    turned = {name: it.swapaxes(1, 2).copy() if ".mlp.experts." in name else it for name, it in tensors.items()}
    assert sum(turned[name].shape != it.shape for name, it in tensors.items()) == 1, "the other one is as wide as high"
    shutil.copy(source / "config.json", tmp_path)
    save_file(turned, tmp_path / "model.safetensors")
    found = all_logits(make_runner("", limits(), folder=tmp_path), golden["tokens"].tolist(), slot=1, chunks=(16, 13))
    np.testing.assert_allclose(found, golden["logits"], atol=1e-4)
    name = next(name for name in turned if name.endswith("experts.gate_up_proj"))
    save_file(turned | {name: turned[name][:, :-1].copy()}, tmp_path / "model.safetensors")
    with pytest.raises(HandlerLoadError, match=r"gate_up_proj and experts\.down_proj have the shapes \(6, 31, 32\)"):
        make_runner("", limits(), folder=tmp_path)


@pytest.mark.parametrize("variant", sorted(folder.name for folder in VARIANTS.iterdir()))
def test_members_that_change_the_numbers(variant: str, tmp_path: Path) -> None:
    """The weights of another checkpoint; a prompt, and what follows token by token."""
    golden = np.load(VARIANTS / variant / "expected.npz")
    shutil.copytree(GOLDENS / str(golden["weights"]), tmp_path / "model")
    shutil.copy(VARIANTS / variant / "config.json", tmp_path / "model")
    runner = make_runner(variant, limits(), folder=tmp_path / "model")
    tokens, prompt = golden["tokens"].tolist(), int(golden["prompt"])
    if runner._config.stretches and prompt > runner._config.native:
        runner.stretch(1, prompt)
    chunks = [16] * (prompt // 16) + [prompt % 16] * (prompt % 16 > 0)
    np.testing.assert_allclose(all_logits(runner, tokens, slot=1, chunks=tuple(chunks)), golden["logits"], atol=5e-4)


def test_a_short_text_does_not_turn_as_the_long_one_before_it_did(tmp_path: Path) -> None:
    golden = np.load(VARIANTS / "dynamic" / "expected.npz")
    shutil.copytree(GOLDENS / "llama", tmp_path / "model")
    shutil.copy(VARIANTS / "dynamic" / "config.json", tmp_path / "model")
    runner, tokens = make_runner("dynamic", limits(), folder=tmp_path / "model"), golden["tokens"].tolist()
    fresh = runner.prefill(0, 0, tokens[:16])
    runner.stretch(0, 60)
    assert np.abs(runner.prefill(0, 0, tokens[:16]) - fresh).max() > 0.1
    runner.stretch(0, 0)
    np.testing.assert_array_equal(runner.prefill(0, 0, tokens[:16]), fresh)


def norm(rows: Any, weight: Any, dtype: Any) -> Any:
    from msx_llm.kernels.cpu.cells import RMSNorm

    cell = RMSNorm(rows.shape[-1], 1e-6, dtype)
    cell.weight.set_data(ms.Tensor(weight, dtype))
    return cell(ms.Tensor(rows, dtype)).asnumpy()  # a graph on a CPU keeps float32 between kernels, an NPU's does not


@pytest.mark.parametrize("count", [2, 65])
def test_norms_of_half_precision_go_through_float32(count: int) -> None:
    """As in transformers: the square of 400 is more than float16 holds."""
    rows = np.tile(np.linspace(-1, 1, 64, dtype=np.float16), (count, 1))
    rows[0, 7] = 400
    weight = np.linspace(0.5, 1.5, 64, dtype=np.float16)
    wide = rows.astype(np.float32)
    wanted = (wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)).astype(np.float16) * weight
    found = norm(rows, weight, ms.float16)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, wanted, rtol=2e-3)


@pytest.mark.parametrize(
    ("family", "stages", "shared"),
    [("llama", 1, True), ("llama", 2, False), ("qwen2", 1, False), ("gemma3", 1, False)],
    ids=["tied", "two stages", "not tied", "scaled"],
)
@pytest.mark.parametrize("kernels", ["cpu", "ascend"])
def test_a_tied_head_is_the_embeddings_weight(kernels: str, family: str, stages: int, shared: bool) -> None:
    from msx_core.mindspore.loading import without_data
    from msx_llm.kernels.ascend.factory import AscendKernels
    from msx_llm.kernels.cpu.factory import CpuKernels
    from msx_llm.models.decoder import Decoder
    from msx_llm.models.parts import DecoderParts
    from msx_llm.models.registry import read_config
    from msx_sdk.mindspore.parallel import Parallel

    made = CpuKernels() if kernels == "cpu" else AscendKernels(ms.float16)
    config = read_config(GOLDENS / family)
    with without_data():
        decoders = [
            Decoder(config, DecoderParts(Parallel(rank, stages=stages), made), range(2)) for rank in range(stages)
        ]
    first, last = decoders[0].body.embed_tokens, decoders[-1].head.lm_head
    assert (first.weight is last.weight) == shared
