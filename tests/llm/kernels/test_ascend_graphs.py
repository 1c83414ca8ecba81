"""The graphs of an NPU, through MindSpore's own front end: it infers shapes and types, then finds no kernels here."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from msx_llm.models.registry import read_config
from tests.llm.quantised_models import BY_ID, SIZES, WIDE, write_quantised
from tests.llm.runners import FAMILIES, limits, make_runner, quick
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

PREFILL, MIXED, DECODE = STEPS = range(3)
ATTENTIONS = ("llama", "gemma3", "gemma4", "gpt_oss", "deepseek_v3")
"""Families that have all kinds of attention between them. All else is alike in all kinds of steps: one stands for them,
and the others are compiled by hand."""
ONE_LAYER: dict[str, Any] = {"num_hidden_layers": 1, "layer_types": None, "mlp_only_layers": []}
PASSED = "Kernel select failed"
"""MindSpore's error where all checks have passed, and a kernel is to be chosen."""


@pytest.fixture(autouse=True)
def _folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MindSpore writes what it refused into the current folder


def make(family: str, folder: Path, dtype: str, **changes: Any) -> Any:
    from msx_llm.kernels.ascend.factory import AscendKernels

    model = make_wide(family, folder / "model", **changes)
    return make_runner(family, limits(), folder=model, kernels=AscendKernels(getattr(ms, dtype)))


def passes(runner: Any, *kinds: int) -> None:
    for said in (refusal(runner, kind) for kind in kinds):
        assert PASSED in said
        assert "AnyType" not in said, "part of the graph was left to Python"


def refusal(runner: Any, kind: int) -> str:
    from msx_llm.kernels.ascend.blocks import nowhere
    from msx_llm.kernels.ascend.graphs import FlatCell

    made = runner._graphs
    call = made.graph(FlatCell(made.decoder, kind))
    arrays = runner._tables.places([0], [0 if kind == PREFILL else 1], [1 if kind == DECODE else 2])
    positions, slots, tables, lengths, q_lengths = map(ms.Tensor, nowhere(arrays))
    reach, rows = ms.Tensor(np.arange(128, dtype=np.int32)), ms.Tensor([0], ms.int32)
    places = (positions, runner._no_angles, slots, tables, lengths, q_lengths, reach, rows, ms.Tensor([0], ms.int32))
    with pytest.raises((RuntimeError, TypeError)) as caught:
        call(positions, *places, made.keys, made.values)
    return str(caught.value)


@pytest.mark.parametrize("family", quick(FAMILIES, *ATTENTIONS))
def test_every_family_passes(family: str, tmp_path: Path) -> None:
    passes(make(family, tmp_path, "float16"), *STEPS)


@pytest.mark.parametrize(("family", "dtype"), [("qwen3", "float16"), ("qwen3", "bfloat16"), ("qwen2_moe", "float16")])
def test_what_is_around_attention_passes(family: str, dtype: str, tmp_path: Path) -> None:
    passes(make(family, tmp_path, dtype, **ONE_LAYER), MIXED)


def test_adapters_pass(tmp_path: Path) -> None:
    from msx_llm.kernels.ascend.factory import AscendKernels
    from msx_llm.models.adapter_shape import AdapterShape

    model = make_wide("llama", tmp_path / "model", **ONE_LAYER)
    room = AdapterShape(2, 8, frozenset({"q_proj", "down_proj"}))
    passes(make_runner("llama", limits(), folder=model, kernels=AscendKernels(ms.float16), adapters=room), MIXED)


def test_the_front_end_does_refuse(tmp_path: Path) -> None:
    """Neither rotary embedding nor the cache has kernels of float32."""
    said = refusal(make("llama", tmp_path, "float32", **ONE_LAYER), MIXED)
    assert "[ApplyRotaryPosEmb]" in said
    assert "Float32" in said
    assert PASSED not in said


def test_kernels_find_the_lengths_by_the_names_of_inputs() -> None:
    from msx_llm.kernels.ascend.graphs import FlatCell

    assert {"batch_valid_length", "q_seq_lens"} <= inspect.signature(FlatCell.construct).parameters.keys()


def test_graphs_are_compiled_for_inference_and_steps_name_their_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `infer_boost` PagedAttention has no kernel; trace memory and capture look for the phase "increment"."""
    from msx_llm.kernels.ascend.graphs import FlatGraphs

    compiled, phases = list[dict[str, Any]](), list[str]()

    def jit(function: Any, **options: Any) -> Any:
        compiled.append(options)
        return lambda *inputs: phases.append(function.phase)

    made = make("llama", tmp_path, "float16")._graphs
    monkeypatch.setattr(ms, "jit", jit)
    graphs = FlatGraphs(made.decoder, read_config(tmp_path / "model"), (2, 128), eager=False)
    for kind in (PREFILL, MIXED, DECODE, PREFILL):
        graphs(kind)
    assert compiled == [{"jit_level": "O0", "infer_boost": "on"}] * 3
    assert phases == ["prefill", "increment", "increment", "prefill"]


def test_blocks_are_made_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is most of the device's memory: through an array of the host it would take minutes."""
    from msx_llm.kernels.ascend import graphs

    shapes = list[tuple[int, ...]]()

    def zeros(shape: tuple[int, ...], dtype: Any) -> Any:
        shapes.append(shape)
        return ms.ops.zeros(shape, dtype)

    made, blocks = make("llama", tmp_path, "float16")._graphs, (2, 128)
    monkeypatch.setattr(graphs, "ops", SimpleNamespace(zeros=zeros))
    monkeypatch.setattr(np, "zeros", lambda *args, **kwargs: pytest.fail("an array of the host"))
    graphs.FlatGraphs(made.decoder, read_config(tmp_path / "model"), blocks, eager=True)
    assert shapes == [(*blocks, 2, 16)] * 2 * len(made.decoder.body.layers)


@pytest.mark.long
def test_whole_experts_pass(tmp_path: Path) -> None:
    """One rank has all of them here; the cells are those of a rank that has some."""
    from msx_llm.kernels.ascend.factory import AscendKernels

    model = make_wide("qwen3_moe", tmp_path / "model")
    passes(make_runner("qwen3_moe", limits(), folder=model, kernels=AscendKernels(ms.float16), whole=True), *STEPS)


@pytest.mark.parametrize(
    ("case", "dtype"), [("int_quantized", "bfloat16"), pytest.param("packed_8", "float16", marks=pytest.mark.long)]
)
def test_experts_of_integers_pass(case: str, dtype: str, tmp_path: Path) -> None:
    from msx_llm.kernels.ascend.factory import AscendKernels

    plain = make_wide("qwen3_moe", tmp_path / "plain", **{**SIZES, **WIDE["qwen3_moe"], **ONE_LAYER})
    folder, _ = write_quantised(plain, BY_ID[case], tmp_path)
    passes(make_runner("qwen3_moe", limits(), folder=folder, kernels=AscendKernels(getattr(ms, dtype))), MIXED)
