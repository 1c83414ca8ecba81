"""Quantised weights on the kernels of a CPU and of an NPU: results are those of the numbers that integers stand for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llm.flat_models import ROUNDING, emulation, make_flat
from tests.llm.kernels_under_test import KINDS
from tests.llm.quantised_models import BY_ID, CASES, INPUT_OFFSET, INPUT_STEP, SIZES, Case, write_quantised
from tests.llm.runners import all_logits, limits, make_runner
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

TOKENS = [(7 * place + place * place) % 60 for place in range(40)]
EXACT, HALF = 2e-5, 5e-3
"""Shares of the largest number."""
ROWS = (1, 9, 70)
"""Each is a way of its own on a CPU: see `BY_GROUPS`; a single row has scales that are not repeated."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ms.runtime.launch_blocking()
    return make_wide("qwen2", tmp_path_factory.mktemp("plain") / "model", **SIZES)


@dataclass
class Made:
    kind: str
    case: Case
    folder: Path
    numbers: dict[str, Any]
    kernels: Any

    def linears(self, layer: int) -> Any:
        from msx_llm.models.linears import LayerLinears
        from msx_llm.models.registry import read_config

        return LayerLinears(self.kernels, read_config(self.folder).quantised, f"model.layers.{layer}")

    def load(self, cell: Any, name: str) -> Any:
        from msx_core.mindspore.loading import load_shards
        from msx_llm.models.registry import read_config
        from msx_llm.models.weights import Checkpoint

        with Checkpoint(self.folder, read_config(self.folder)) as checkpoint:
            load_shards(cell, checkpoint, name)
        return cell

    def near(self, found: Any, x: Any, name: str) -> None:
        if self.kind != "cpu" and self.case.kept not in name:
            x = rounded_inputs(x, self.case)
        wanted = x @ self.numbers[f"{name}.weight"].T + self.numbers.get(f"{name}.bias", 0)
        bound = (EXACT if self.kind == "cpu" else HALF) * np.abs(wanted).max()
        np.testing.assert_allclose(found.astype(ms.float32).asnumpy(), wanted, rtol=0, atol=bound)


def rounded_inputs(x: Any, case: Case) -> Any:
    """Round inputs as an NPU does."""
    if case.modelslim == "W8A8":
        return (np.clip(np.rint(x / INPUT_STEP + INPUT_OFFSET), -128, 127) - INPUT_OFFSET) * INPUT_STEP
    if case.id in ("int_quantized", "modelslim_w8a8_dynamic"):
        scales = np.abs(x).max(-1, keepdims=True) / 127
        return np.rint(x / scales) * scales
    return x


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    with nullcontext() if request.param == "cpu" else emulation():
        yield request.param


LONG = pytest.mark.long
TABLE = [pytest.param(case, id=case.id, marks=[LONG] if case.long else []) for case in CASES]


@pytest.fixture(params=TABLE)
def made(request: pytest.FixtureRequest, kind: str, plain: Path, tmp_path: Path) -> Made:
    from safetensors.numpy import load_file

    from msx_llm.kernels.ascend.factory import AscendKernels
    from msx_llm.kernels.cpu.factory import CpuKernels

    quantised, numbers = write_quantised(plain, request.param, tmp_path)
    kernels = CpuKernels() if kind == "cpu" else AscendKernels(ms.float16)
    return Made(kind, request.param, quantised, load_file(numbers / "model.safetensors"), kernels)


def inputs(rows: int, width: int) -> Any:
    return np.random.default_rng(rows).standard_normal((rows, width)).astype(np.float16).astype(np.float32)


def parallel(rank: int, ranks: int) -> Any:
    from msx_sdk.mindspore.parallel import Parallel

    return Parallel(rank, 1, ranks)


@pytest.mark.parametrize("ranks", [1, 2])
def test_layers_with_one_input(made: Made, ranks: int) -> None:
    from msx_llm.models.kernels import Projection

    names = {"q_proj": 64, "k_proj": 32, "v_proj": 32}
    for rank in range(ranks):
        outputs = {name: Projection(size, parallel(rank, ranks)) for name, size in names.items()}
        cell = made.linears(0).projections("self_attn", 64, outputs, True)
        made.load(cell, "model.layers.0.self_attn.qkv")
        for rows in ROWS:
            x = inputs(rows, 64)
            results = cell(ms.Tensor(x).astype(made.kernels.dtype))
            for (name, size), result in zip(names.items(), results, strict=True):
                own = slice(rank * size // ranks, (rank + 1) * size // ranks)
                made_of(made, result, x, f"model.layers.0.self_attn.{name}", own)


def made_of(made: Made, found: Any, x: Any, name: str, own: slice) -> None:
    part = {f"{name}.{it}": made.numbers[f"{name}.{it}"][own] for it in ("weight", "bias")}
    Made(made.kind, made.case, made.folder, part, made.kernels).near(found, x, name)


def test_a_layer_that_is_divided_by_its_inputs(made: Made) -> None:
    name = "model.layers.1.mlp.down_proj"
    cell = made.load(made.linears(1).row("mlp.down_proj", 128, 64, parallel(0, 1), False), name)
    for rows in ROWS:
        x = inputs(rows, 128)
        made.near(cell(ms.Tensor(x).astype(made.kernels.dtype)), x, name)


@pytest.mark.parametrize("case", [case for case in TABLE if case.id != "gptq_desc_act"])
def test_ranks_have_parts_of_the_sum(case: Case, kind: str, plain: Path, tmp_path: Path, monkeypatch: Any) -> None:
    from mindspore import nn
    from safetensors.numpy import load_file

    from msx_llm.kernels.ascend import quantised as ascend
    from msx_llm.kernels.ascend.factory import AscendKernels
    from msx_llm.kernels.cpu import packed as cpu
    from msx_llm.kernels.cpu.factory import CpuKernels

    monkeypatch.setattr(ascend, "Reduce", lambda parallel: nn.Identity())
    monkeypatch.setattr(cpu, "AllReduce", lambda parallel: nn.Identity())
    quantised, numbers = write_quantised(plain, case, tmp_path)
    kernels = CpuKernels() if kind == "cpu" else AscendKernels(ms.float16)
    made = Made(kind, case, quantised, load_file(numbers / "model.safetensors"), kernels)
    name = "model.layers.0.mlp.down_proj"
    x, total = inputs(9, 128), 0
    if case.id in ("int_quantized", "modelslim_w8a8_dynamic"):
        x[:, [0, 127]] = 4  # each rank's largest
    for rank in range(2):
        cell = made.load(made.linears(0).row("mlp.down_proj", 128, 64, parallel(rank, 2), False), name)
        own = np.ascontiguousarray(x[:, rank * 64 : (rank + 1) * 64])
        total = total + cell.product(ms.Tensor(own).astype(kernels.dtype)).astype(ms.float32)
    made.near(total, x, name)


@pytest.mark.parametrize(("bits", "group"), [(4, None), (4, 64), (8, None), (8, 64)])
def test_graphs_of_all_ways_on_a_cpu(bits: Any, group: int | None) -> None:
    """Code that runs without a graph may not compile."""
    from msx_llm.kernels.cpu.packed import PackedLinear
    from msx_llm.models.quantised.format import LinearFormat, QuantisedMatrix

    random, form = np.random.default_rng(0), LinearFormat(bits=bits, group=group, zeros=True)
    shape = (form.groups(128), 32)
    codes = random.integers(-(1 << bits - 1), 1 << bits - 1, (128, 32), np.int8)
    scales, zeros = random.random(shape, np.float32), random.integers(-8, 8, shape).astype(np.float32)
    spread = [np.repeat(it, 128 // shape[0], 0) for it in (scales, zeros)]
    cell = PackedLinear(form, 128, 32, False)
    cell.put(QuantisedMatrix(codes, scales, zeros), None)
    graph = ms.jit(cell.construct)
    for rows in ROWS:
        x = inputs(rows, 128)
        wanted = x @ ((codes - spread[1]) * spread[0])
        np.testing.assert_allclose(graph(ms.Tensor(x)).asnumpy(), wanted, rtol=0, atol=EXACT * np.abs(wanted).max())


@pytest.mark.parametrize("case", [pytest.param(it, id=it.id, marks=[] if it.id == "awq" else LONG) for it in CASES])
def test_logits_are_those_of_the_numbers(case: Case, kind: str, plain: Path, tmp_path: Path) -> None:
    quantised, numbers = write_quantised(plain, case, tmp_path)
    wanted = _logits("cpu", numbers, graphs=False)
    rounds = kind != "cpu" and ("int_quantized" in case.id or "w8a8" in case.id)
    bound = EXACT if kind == "cpu" else 0.05 if rounds else 2 * ROUNDING["float16"]
    np.testing.assert_allclose(_logits(kind, quantised), wanted, rtol=0, atol=bound * np.abs(wanted).max())


def _logits(kind: str, folder: Path, graphs: bool = True) -> Any:
    """Logits of a prompt of 20 tokens, and of 2 single ones; in a graph of 22 single ones."""
    shape = limits(prefills=(32,), slots=(1,))
    if kind == "cpu":
        runner = make_runner("cpu", shape, folder=folder, graphs=graphs)
        return all_logits(runner, TOKENS[:22], 0, () if graphs else (20,))
    return all_logits(make_flat("npu", folder, "float16", shape), TOKENS[:22], 0, (20,))


@pytest.mark.parametrize(
    ("id", "changes", "says"),
    [
        ("awq", {"version": "gemv"}, "quantization_config.version: gemv is not supported; gemm can be read"),
        ("awq", {"bits": 3}, "quantization_config.bits: 3 is not supported; 4 can be read"),
        ("gptq", {"bits": 2}, "bits: 2 is not supported; 4 and 8 can be read"),
        ("gptq", {"group_size": 7}, "group_size: 7 is not an even number of inputs"),
        ("gptq", {"group_size": 96}, "which groups of 96 do not divide"),
        ("gptq", {"dynamic": {"-:.*": {}}}, "dynamic: .* is not supported: all layers must be quantised alike"),
        ("gptq", {"desc_act": "no"}, "desc_act: no is not true or false"),
        ("packed_4", {"kv_cache_scheme": {"num_bits": 8}}, "kv_cache_scheme: .* is not supported"),
        ("packed_4", {"format": "float-quantized"}, "format: float-quantized is not supported"),
        ("packed_4", {"ignore": ["re:(a*)*b"]}, "is not an expression of letters, dots and at most four"),
        ("packed_4", {"ignore": ["re:[*"]}, "is not a regular expression"),
        ("packed_4", {"config_groups": {}}, "config_groups: .* is not one group"),
        ("packed_4", {"quant_method": "bitsandbytes"}, "bitsandbytes is not supported; take the checkpoint"),
    ],
)
def test_what_cannot_be_read_is_refused(
    id: str, changes: dict[str, Any], says: str, plain: Path, tmp_path: Path
) -> None:
    from msx_llm.models.registry import read_config
    from msx_llm.models.weights import Checkpoint
    from msx_sdk.errors import HandlerLoadError

    folder, _ = write_quantised(plain, BY_ID[id], tmp_path)
    given = json.loads((folder / "config.json").read_text())
    given["quantization_config"] |= changes
    (folder / "config.json").write_text(json.dumps(given))
    with pytest.raises(HandlerLoadError, match=says):
        Checkpoint(folder, read_config(folder))


@pytest.mark.parametrize(
    ("id", "ranks", "says"),
    [
        ("gptq_desc_act", 2, "desc_act have inputs of all ranks.* use pipelineStages"),
        ("gptq", 4, r"o_proj: groups of 32 do not divide the 16 inputs that each of tensorParallel: 4 ranks has"),
    ],
)
def test_groups_that_ranks_would_share_are_refused(id: str, ranks: int, says: str, plain: Path, tmp_path: Path) -> None:
    from msx_llm.division import check_division
    from msx_llm.models.registry import read_config
    from msx_sdk.errors import HandlerLoadError

    folder, _ = write_quantised(plain, BY_ID[id], tmp_path)
    with pytest.raises(HandlerLoadError, match=says):
        check_division(read_config(folder), parallel(0, ranks))


def test_other_methods_of_modelslim_are_refused(plain: Path, tmp_path: Path) -> None:
    from msx_llm.models.registry import read_config
    from msx_sdk.errors import HandlerLoadError

    folder, _ = write_quantised(plain, BY_ID["modelslim_w8a16"], tmp_path)
    file = folder / "quant_model_description.json"
    file.write_text(file.read_text().replace("W8A16", "W4A8_DYNAMIC"))
    with pytest.raises(HandlerLoadError, match=r"_proj.weight: 'W4A8_DYNAMIC' is not supported; FLOAT, W8A8, "):
        read_config(folder)
