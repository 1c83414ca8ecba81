"""Steps of a runner on the kernels of a CPU and of an NPU: logits are those of whole texts without a cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llm.kernels_under_test import (
    CHUNK,
    CONTEXT,
    KINDS,
    VOCAB,
    KernelsUnderTest,
    Reference,
    kernels_under_test,
    make_model,
)

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

TOKENS = [(7 * place + place * place) % VOCAB for place in range(CONTEXT)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ms.runtime.launch_blocking()
    return make_model(tmp_path_factory.mktemp("kernels") / "model")


@pytest.fixture(scope="module")
def wanted(model: Path) -> Any:
    """Logits of every token."""
    return Reference(model).logits(TOKENS)


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest, model: Path) -> Iterator[KernelsUnderTest]:
    with kernels_under_test(request.param, model) as kernels:
        yield kernels


@pytest.fixture
def kernels(made: KernelsUnderTest) -> KernelsUnderTest:
    made.own_places()
    return made


def test_the_last_token_of_a_prompt(kernels: KernelsUnderTest, wanted: Any) -> None:
    kernels.near(kernels.runner.prefill(2, 0, TOKENS[:20]), wanted[19])


@pytest.mark.parametrize("slots", [[3], [2, 1], [3, 2, 0, 1]])
def test_any_slots_at_any_positions(kernels: KernelsUnderTest, wanted: Any, slots: list[int]) -> None:
    lengths = [5 + 6 * n for n in range(len(slots))]
    for slot, length in zip(slots, lengths, strict=True):
        kernels.runner.prefill(slot, 0, TOKENS[:length])
    for ahead in range(2):
        positions = [length + ahead for length in lengths]
        logits = kernels.runner.decode(slots, [TOKENS[position] for position in positions], positions)
        kernels.near(logits, wanted[positions])


def test_slots_that_take_no_part_stay_as_they_are(kernels: KernelsUnderTest, wanted: Any) -> None:
    runner = kernels.runner
    runner.prefill(2, 0, TOKENS[:20])
    runner.prefill(1, 0, TOKENS[5:17])
    runner.decode([0, 3], [1, 2], [0, 0])  # on a CPU with padding
    runner.prefill(3, 0, TOKENS[:9])
    kernels.near(runner.decode([2], [TOKENS[20]], [20])[0], wanted[20])


def test_the_last_positions_of_the_context(kernels: KernelsUnderTest, wanted: Any) -> None:
    """Padding of a chunk that ends with the context writes nowhere."""
    runner = kernels.runner
    runner.prefill(3, 0, TOKENS[:30])
    starts = range(0, CONTEXT, 60)
    chunks = [runner.prefill(2, start, TOKENS[start : start + 60], all_logits=True) for start in starts]
    kernels.near(np.concatenate(chunks), wanted)
    kernels.near(runner.prefill(3, 29, TOKENS[29:30]), wanted[29])


def test_a_text_goes_on_behind_the_prefix_of_another_one(kernels: KernelsUnderTest, wanted: Any) -> None:
    runner, length = kernels.runner, kernels.prefix
    for start in range(0, length + 1, CHUNK):
        runner.prefill(0, start, TOKENS[start : min(start + CHUNK, length + 1)])
    runner.prefill(3, 0, TOKENS[10:40])
    kernels.share(0, 3)
    kernels.near(runner.prefill(3, length, TOKENS[length : length + 15], all_logits=True), wanted[length : length + 15])
    kernels.near(runner.decode([0], [TOKENS[length + 1]], [length + 1])[0], wanted[length + 1])  # the source is whole
