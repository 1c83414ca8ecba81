"""A runner that sleeps releases its memory, and computes the same after it; on several ranks: test_runner_ranks."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.adapters.adapter import Adapter
from msx_llm.kernels.cpu import sleeping
from tests.llm.flat_models import TOKENS
from tests.llm.peft_folders import make_adapter, room
from tests.llm.quantised_models import CASES, Case, write_quantised
from tests.llm.rank import spoil
from tests.llm.runners import GOLDENS, compiled_graphs, expected, limits, make_runner
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

QUICK = ("gemma3",)
FAMILIES = [
    pytest.param(folder.name, marks=[] if folder.name in QUICK else [pytest.mark.long])
    for folder in sorted(GOLDENS.iterdir())
]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_read_again_is_all_that_was_released(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleeping, "release", spoil)
    runner, tokens = make_runner(family, limits()), expected(family)[0][:16]
    before = runner.prefill(0, 0, tokens, all_logits=True)
    runner.sleep(weights=True)
    assert not np.isfinite(runner.prefill(0, 0, tokens, all_logits=True)).any()
    spoil(runner._memory._caches, 0)  # as their pages are
    runner.wake()
    np.testing.assert_array_equal(runner.prefill(0, 0, tokens, all_logits=True), before)


@pytest.mark.parametrize(
    "case", [pytest.param(it, id=it.id, marks=[] if it.id == "gptq_desc_act" else [pytest.mark.long]) for it in CASES]
)
def test_quantised_weights_are_read_again(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleeping, "release", spoil)
    plain = make_wide("qwen2", tmp_path / "plain", intermediate_size=128)
    folder, _ = write_quantised(plain, case, tmp_path)
    runner = make_runner("quantised", limits(), folder=folder)
    before = runner.prefill(0, 0, TOKENS[:16])
    runner.sleep(weights=True)
    spoil(runner._memory._caches, 0)  # as their pages are
    runner.wake()
    np.testing.assert_array_equal(runner.prefill(0, 0, TOKENS[:16]), before)


def test_adapters_are_placed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleeping, "release", spoil)
    model = make_wide("llama", tmp_path / "model", num_hidden_layers=1)
    adapter = Adapter("one", str(make_adapter(model, tmp_path / "one", 1)))
    runner = make_runner("adapted", limits(), folder=model, adapters=room())
    plain = runner.prefill(0, 0, TOKENS[:16])
    runner.adapt(0, 1, adapter)
    before = runner.prefill(0, 0, TOKENS[:16])
    assert np.abs(before - plain).max() > 0.1
    runner.sleep(weights=True)
    spoil(runner._memory._caches, 0)  # as their pages are
    runner.wake()
    runner.adapt(0, 0, None)
    np.testing.assert_array_equal(runner.prefill(0, 0, TOKENS[:16]), plain)
    runner.adapt(0, 1, adapter)
    np.testing.assert_array_equal(runner.prefill(0, 0, TOKENS[:16]), before)


def test_memory_is_given_back_and_graphs_stay(tmp_path: Path) -> None:
    model = make_wide("llama", tmp_path / "model", vocab_size=4096, hidden_size=1024, num_hidden_layers=1)
    runner = make_runner("wide", limits(contexts=(512,)), folder=model, graphs=True)
    before, graphs = runner.prefill(0, 0, TOKENS[:16]), compiled_graphs()
    weights, caches = list(runner._memory._decoder.get_parameters()), runner._memory._caches
    held = [it for it in weights if not any(it is cache for cache in caches)]
    assert resident(held) > 0.99 * size_of(held) > 16 << 20
    runner.sleep(weights=False)
    assert (resident(caches), resident(held) > 0) == (0, True)
    runner.sleep(weights=True)
    assert resident(held) < 0.001 * size_of(held)
    runner.wake()
    np.testing.assert_array_equal(runner.prefill(0, 0, TOKENS[:16]), before)
    assert compiled_graphs() == graphs


def size_of(parameters: Iterable[Any]) -> int:
    return sum(int(one.nbytes) for one in parameters)


def resident(parameters: Iterable[Any]) -> int:
    """Bytes of their whole pages that are in memory."""
    return sum(pages_of(one.data_ptr(), int(one.nbytes)) for one in parameters) * mmap.PAGESIZE


def pages_of(address: int, size: int) -> int:
    first, end = -(-address // mmap.PAGESIZE), (address + size) // mmap.PAGESIZE
    with Path("/proc/self/pagemap").open("rb", buffering=0) as file:
        file.seek(first * 8)
        entries = np.frombuffer(file.read(max(end - first, 0) * 8), np.uint64)
    return int((entries >> np.uint64(63)).sum())
