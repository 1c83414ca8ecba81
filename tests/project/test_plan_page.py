"""docs/plan.md shows what `msx-serve plan` says, and the numbers of the devices that it is computed with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msx_core.sizing import SizingRequest
from msx_frontend.cli.subcommands.plan_table import table
from msx_llm.kernels.ascend.peaks import GIB, PEAKS
from msx_llm.sizing.estimate import estimate
from tests.llm.sizing.models import folder_of
from tests.pages import ROOT

PAGE = (ROOT / "docs" / "plan.md").read_text()
QWEN3_8B = {
    "model_type": "qwen3",
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
UNITS = {"GiB": GIB, "TB/s": 1e12, "GB/s": 1e9, "TFLOPS": 1e12}


def test_the_example_is_what_the_command_says(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, QWEN3_8B)
    said = table(estimate(SizingRequest(folder=str(folder), npu="910B4", parallel="tp4", texts=64, context=8192)))
    (shown,) = re.findall(r"^```text\n(Estimate: .*?)```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown.strip() == said


@pytest.mark.parametrize("npu", PEAKS)
def test_the_numbers_of_a_device(npu: str) -> None:
    (row,) = re.findall(rf"^\| {npu}[^|]*\|(.*)\|$", PAGE, re.MULTILINE)
    numbers = [_number(cell.strip()) for cell in row.split(" | ")[:4]]
    assert numbers == [pytest.approx(one) if one else None for one in PEAKS[npu][:4]]


def _number(cell: str) -> float | None:
    """None: not known."""
    value, _, unit = cell.partition(" ")
    return float(value) * UNITS[unit] if unit else None
