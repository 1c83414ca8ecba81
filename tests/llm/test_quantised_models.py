"""Whole models of several families with quantised weights, and with an adapter: logits are those of the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.adapters.adapter import Adapter
from tests.llm.flat_models import ROUNDING, emulation, make_flat
from tests.llm.peft_folders import make_adapter, merged, room
from tests.llm.quantised_models import BY_ID, WIDE, write_quantised
from tests.llm.runners import all_logits, limits, make_runner
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

TOKENS = [(7 * place + place * place) % 60 for place in range(22)]
SHAPE = limits(prefills=(32,), slots=(1,))
LONG = pytest.mark.long
EXACT = 2e-5
"""Share of the largest logit."""
FAMILIES = [
    ("npu", "qwen3", "gptq_8"),
    pytest.param("cpu", "llama", "packed_4_zeros", marks=LONG),
    pytest.param("npu", "llama", "awq", marks=LONG),
    pytest.param("cpu", "qwen3", "packed_8", marks=LONG),
    pytest.param("cpu", "llama", "modelslim_w8a16", marks=LONG),
    pytest.param("npu", "qwen3", "modelslim_w8a16", marks=LONG),
    pytest.param("cpu", "mistral", "awq", marks=LONG),
    pytest.param("cpu", "gemma3", "awq", marks=LONG),
    ("cpu", "glm4", "packed_4_zeros"),
    ("cpu", "qwen2_moe", "awq"),
    pytest.param("cpu", "qwen3_moe", "packed_8", marks=LONG),
    pytest.param("cpu", "qwen3_moe", "gptq_desc_act", marks=LONG),
    pytest.param("npu", "qwen2_moe", "awq", marks=LONG),
    ("npu", "qwen3_moe", "packed_8"),
    pytest.param("npu", "qwen3_moe", "modelslim_w8a16", marks=LONG),
    pytest.param("npu", "qwen3_moe", "modelslim_w8a8_dynamic", marks=LONG),
    pytest.param("npu", "deepseek_v3", "modelslim_w8a8_dynamic", marks=LONG),
    pytest.param("cpu", "deepseek_v3", "int_quantized", marks=LONG),
    pytest.param("cpu", "deepseek_v2", "modelslim_w8a8", marks=LONG),
    pytest.param("npu", "deepseek_v3", "packed_8", marks=LONG),
    pytest.param("npu", "glm4", "awq", marks=LONG),
    pytest.param("cpu", "phi3", "gptq_desc_act", marks=LONG),
    pytest.param("npu", "phi3", "awq", marks=LONG),
    pytest.param("npu", "phi3", "modelslim_w8a16", marks=LONG),
]


def _written(family: str, case: str, folder: Path) -> tuple[Path, Path]:
    ms.runtime.launch_blocking()
    sizes = WIDE.get(family, {"num_hidden_layers": 1})
    plain = make_wide(family, folder / "plain", layer_types=None, intermediate_size=128, **sizes)
    return write_quantised(plain, BY_ID[case], folder)


@pytest.mark.parametrize(("kind", "family", "case"), FAMILIES)
def test_families(kind: str, family: str, case: str, tmp_path: Path) -> None:
    quantised, numbers = _written(family, case, tmp_path)
    wanted = _on_a_cpu(numbers)
    if kind == "cpu":
        for graphs in (False, True):
            _near(_on_a_cpu(quantised, graphs), wanted, EXACT)
        return
    dtype = "bfloat16" if "dynamic" in case else "float16"  # an NPU rounds the inputs then, by 8 bits
    with emulation():
        _near(all_logits(make_flat("npu", quantised, dtype, SHAPE), TOKENS, 0, (20,)), wanted, 2 * ROUNDING[dtype])


def _near(found: Any, wanted: Any, bound: float) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound * np.abs(wanted).max())


def _on_a_cpu(folder: Path, graphs: bool = False, adapter: Path | None = None) -> Any:
    """Logits of a prompt and of single tokens; a graph reads all one by one, so that one is enough."""
    runner = make_runner("cpu", SHAPE, folder=folder, adapters=room() if adapter else None, graphs=graphs)
    if adapter is not None:
        runner.adapt(0, 1, Adapter("own", str(adapter)))
    return all_logits(runner, TOKENS, 0, () if graphs else (20,))


@pytest.mark.parametrize("case", ["awq", pytest.param("packed_8", marks=LONG)])
def test_an_adapter_is_added_to_what_integers_mean(case: str, tmp_path: Path) -> None:
    quantised, numbers = _written("llama", case, tmp_path)
    adapter = make_adapter(numbers, tmp_path / "adapter", 1)
    whole = merged(numbers, adapter, tmp_path / "merged", 2 / 4)
    _near(_on_a_cpu(quantised, graphs=True, adapter=adapter), _on_a_cpu(whole), 1e-4)
