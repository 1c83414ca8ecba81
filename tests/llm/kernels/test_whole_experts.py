"""Experts that ranks have whole: what all ranks add up to is what one rank computes, each rank made in this process."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.models.experts import ExpertsConfig
from msx_sdk.errors import HandlerLoadError
from tests.llm.flat_models import ROUNDING, emulation
from tests.llm.runners import GOLDENS

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

HIDDEN, RANKS = 32, 4
EXPERTS = ExpertsConfig(count=8, chosen=2, inner=16, layers=(True,))
WHOLE = ExpertsConfig(count=8, chosen=2, inner=16, layers=(True,), whole=True)
CHOSEN = [[0, 7], [3, 2], [2, 3], [5, 4], [1, 0], [7, 6], [2, 6]]


class RandomWeights:
    def __init__(self) -> None:
        self.read_names: set[str] = set()

    def read(self, name: str, *index: slice) -> Any:
        self.read_names.add(name)
        shape = (HIDDEN, EXPERTS.inner) if "down" in name else (EXPERTS.inner, HIDDEN)
        seed = sum(name.encode())
        return (np.random.default_rng(seed).standard_normal(shape) * 0.3)[index].astype(np.float32)


def part_of(kernels: str, experts: ExpertsConfig, rank: int, size: int, rows: int) -> tuple[Any, int]:
    """A rank's part of the sum, and how many tensors it has read."""
    from msx_llm.kernels.ascend.factory import AscendKernels
    from msx_llm.kernels.cpu.factory import CpuKernels
    from msx_sdk.mindspore.parallel import Parallel

    made = CpuKernels() if kernels == "cpu" else AscendKernels(ms.float16)
    cell, weights = made.experts(HIDDEN, experts, Parallel(rank, 1, size)), RandomWeights()
    cell.load_shard(weights, "experts")
    numbers = np.random.default_rng(3)
    x = ms.Tensor(numbers.standard_normal((rows, HIDDEN)).astype(np.float32)).astype(made.dtype)
    shares = ms.Tensor(numbers.random((rows, 2)).astype(np.float32)).astype(made.dtype)
    chosen = ms.Tensor(np.array(CHOSEN[:rows], np.int32))
    return cell(x, shares, chosen).astype(ms.float32).asnumpy(), len(weights.read_names)


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("kernels", ["cpu", "emulated"])
def test_ranks_add_up_to_one(kernels: str, rows: int) -> None:
    with emulation() if kernels == "emulated" else nullcontext():
        wanted, _ = part_of(kernels, EXPERTS, 0, 1, rows)
        parts = [part_of(kernels, WHOLE, rank, RANKS, rows) for rank in range(RANKS)]
    assert [read for _, read in parts] == [3 * EXPERTS.count // RANKS] * RANKS
    bound = 1e-5 if kernels == "cpu" else ROUNDING["float16"] * np.abs(wanted).max()
    np.testing.assert_allclose(sum(part for part, _ in parts), wanted, atol=bound)
    if rows == 1:
        assert [bool(np.any(part)) for part, _ in parts] == [True, False, False, True]


def refusal(family: str, ranks: int) -> str:
    from msx_llm.division import check_division, with_whole_experts
    from msx_llm.models.registry import read_config
    from msx_sdk.mindspore.parallel import Parallel

    with pytest.raises(HandlerLoadError) as raised:
        check_division(with_whole_experts(read_config(GOLDENS / family), True), Parallel(0, 1, ranks))
    return str(raised.value)


def test_what_cannot_be_had_whole(tmp_path: Path) -> None:
    for family in ("qwen3", "gpt_oss"):
        assert refusal(family, 2).startswith(
            f"parallel.expertParallel: config.json, model_type: {family} has no experts"
        )
    assert "num_experts" in refusal("qwen3_moe", 16) or "num_attention_heads" in refusal("qwen3_moe", 16)
