"""Experts that stay integers on an NPU: over ranks, by their width or whole, they add up to what the numbers make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llm.flat_models import ROUNDING, emulation
from tests.llm.kernels.expert_cells import expert_cell
from tests.llm.quantised_models import BY_ID, SIZES, WIDE, write_quantised
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

EXPERTS, CHOSEN = 6, 2
WIDENING, ROUNDED, NUMBERS = "WideningStack", "RoundedStack", "Parameter"
KEPT = [
    ("packed_8", "float16", WIDENING),
    ("packed_8", "bfloat16", WIDENING),
    ("int_quantized", "float16", WIDENING),
    ("int_quantized", "bfloat16", ROUNDED),
    ("modelslim_w8a8_dynamic", "bfloat16", ROUNDED),
    ("modelslim_w8a8", "bfloat16", WIDENING),
    ("awq", "float16", NUMBERS),
    ("gptq_desc_act", "float16", NUMBERS),
]
"""Kinds of files, with the form of the weights of experts in a device's memory."""


def written(case: str, folder: Path) -> tuple[Path, Path]:
    plain = make_wide("qwen2_moe", folder / "plain", **{**SIZES, **WIDE["qwen2_moe"], "num_experts": EXPERTS})
    return write_quantised(plain, BY_ID[case], folder)


def kernels_of(dtype: str) -> Any:
    from msx_llm.kernels.ascend.factory import AscendKernels

    return AscendKernels(getattr(ms, dtype))


def step(tokens: int, width: int, dtype: str) -> tuple[Any, Any, Any]:
    """States, weights of the experts, and which are chosen."""
    random = np.random.default_rng(tokens)
    states, weights = random.standard_normal((tokens, width)), random.random((tokens, CHOSEN))
    chosen = np.stack([random.permutation(EXPERTS)[:CHOSEN] for _ in range(tokens)]).astype(np.int32)
    x, shares = (ms.Tensor(it.astype(np.float32)).astype(getattr(ms, dtype)) for it in (states, weights))
    return x, shares, ms.Tensor(chosen)


@pytest.mark.parametrize(("case", "dtype", "kind"), KEPT)
def test_what_is_kept_of_each_format(case: str, dtype: str, kind: str, tmp_path: Path) -> None:
    quantised, _ = written(case, tmp_path)
    with emulation():
        cell = expert_cell(kernels_of(dtype), quantised)
    assert {type(cell.gate_up).__name__, type(cell.down).__name__} == {kind}


@pytest.mark.parametrize("tokens", [1, 40])
@pytest.mark.parametrize(
    ("case", "dtype", "whole"),
    [
        ("packed_8", "float16", False),
        ("packed_8", "float16", True),
        ("packed_8", "bfloat16", False),
        ("int_quantized", "bfloat16", False),
    ],
)
def test_ranks_add_up_to_the_numbers(case: str, dtype: str, whole: bool, tokens: int, tmp_path: Path) -> None:
    quantised, numbers = written(case, tmp_path)
    with emulation():
        plain = expert_cell(kernels_of(dtype), numbers)
        given = step(tokens, plain.hidden, dtype)
        wanted = plain(*given).astype(ms.float32).asnumpy()
        cells = [expert_cell(kernels_of(dtype), quantised, rank, 2, whole) for rank in range(2)]
        found = sum(cell(*given).astype(ms.float32).asnumpy() for cell in cells)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2 * ROUNDING[dtype] * np.abs(wanted).max())
