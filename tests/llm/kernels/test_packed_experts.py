"""Experts that stay integers on a CPU: over ranks, by their width or whole, they add up to what the numbers make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llm.kernels.expert_cells import expert_cell
from tests.llm.quantised_models import BY_ID, SIZES, WIDE, write_quantised
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")
EXACT = 2e-5


def cell_of(folder: Path, rank: int, ranks: int, whole: bool) -> Any:
    from msx_llm.kernels.cpu.factory import CpuKernels

    return expert_cell(CpuKernels(), folder, rank, ranks, whole)


@pytest.fixture(params=["packed_4_zeros", "packed_8", "awq"])
def folders(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    sizes = {**SIZES, **WIDE["qwen2_moe"], "num_experts": 6}
    return write_quantised(make_wide("qwen2_moe", tmp_path / "plain", **sizes), BY_ID[request.param], tmp_path)


@pytest.mark.parametrize("tokens", [1, 40])
@pytest.mark.parametrize("whole", [False, True])
def test_ranks_add_up_to_the_numbers(folders: tuple[Path, Path], whole: bool, tokens: int) -> None:
    from msx_llm.kernels.cpu.experts import BlockedExperts
    from msx_llm.kernels.cpu.packed_experts import PackedExperts

    quantised, numbers = folders
    random = np.random.default_rng(tokens)
    plain = cell_of(numbers, 0, 1, False)
    x = ms.Tensor(random.standard_normal((tokens, plain.hidden)).astype(np.float32))
    weights = ms.Tensor(random.random((tokens, plain.chosen)).astype(np.float32))
    chosen = ms.Tensor(np.stack([random.permutation(6)[: plain.chosen] for _ in range(tokens)]).astype(np.int32))
    wanted = plain(x, weights, chosen).asnumpy()
    cells = [cell_of(quantised, rank, 2, whole) for rank in range(2)]
    assert {type(plain), *map(type, cells)} == {BlockedExperts, PackedExperts}
    found = sum(cell(x, weights, chosen).asnumpy() for cell in cells)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=EXACT * np.abs(wanted).max())


def test_experts_that_sort_their_inputs_are_numbers(tmp_path: Path) -> None:
    from msx_llm.kernels.cpu.experts import BlockedExperts

    plain = make_wide("qwen2_moe", tmp_path / "plain", **{**SIZES, **WIDE["qwen2_moe"]})
    quantised, numbers = write_quantised(plain, BY_ID["gptq_desc_act"], tmp_path)
    found, wanted = (cell_of(folder, 0, 1, False) for folder in (quantised, numbers))
    assert type(found) is BlockedExperts
    np.testing.assert_allclose(found.gate_up.asnumpy(), wanted.gate_up.asnumpy(), rtol=0, atol=1e-6)
