"""Texts with different adapters in one step: each has the logits of the model with its adapter merged."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.backend.llm.flat_models import ROUNDING, emulation
from tests.unit.backend.llm.peft_folders import make_adapter, merged, room
from tests.unit.backend.llm.runners import compiled_graphs, limits, make_runner
from tests.unit.backend.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

TOKENS = [(7 * place + place * place) % 96 for place in range(9)]
SLOTS = 3
CASES = [
    ("cpu", "phi3"),
    ("npu", "phi3"),
    *(pytest.param(kind, family, marks=pytest.mark.long) for kind in ("cpu", "npu") for family in ("llama", "qwen2")),
    pytest.param("cpu", "glm4", marks=pytest.mark.long),
    pytest.param("cpu", "qwen3_moe", marks=pytest.mark.long),
]


def _targets(family: str) -> Any:
    from msx_backend.llm.adapters.weights import ATTENTION

    return ATTENTION if family.endswith("moe") else None


def _texts(runner: Any, slots: tuple[int, ...] = (0, 1, 2)) -> Any:
    """Logits of the last token of a prompt, and of the one after it, which the slots get in one step."""
    if hasattr(runner, "assign"):
        for slot in slots:
            runner.assign(slot, (slot + 1,))
    prompts = [runner.prefill(slot, 0, TOKENS[:-1]) for slot in slots]
    decoded = runner.decode(slots, [TOKENS[-1]] * len(slots), [len(TOKENS) - 1] * len(slots))
    return np.stack([np.stack(pair) for pair in zip(prompts, decoded, strict=True)])


@pytest.mark.parametrize(("kind", "family"), CASES)
def test_logits_are_those_of_merged_weights(kind: str, family: str, tmp_path: Path) -> None:
    from msx_backend.llm.kernels.ascend.factory import AscendKernels

    ms.runtime.launch_blocking()
    shape = limits(slots=(SLOTS,))
    model = make_wide(family, tmp_path / "model", num_hidden_layers=1, layer_types=None)
    one = make_adapter(model, tmp_path / "one", 1, targets=_targets(family))
    two = make_adapter(model, tmp_path / "two", 2, rank=8, targets=_targets(family), use_rslora=True)
    folders = [model, merged(model, one, tmp_path / "a", 2 / 4), merged(model, two, tmp_path / "b", 2 / 8**0.5)]
    wanted = np.concatenate([_texts(make_runner(family, shape, folder=folder), (0,)) for folder in folders])
    with emulation() if kind == "npu" else contextlib.nullcontext():
        kernels = AscendKernels(ms.float16) if kind == "npu" else None
        runner = make_runner(family, shape, folder=model, kernels=kernels, adapters=room())
        runner.warm_up(lambda shape: None)
        graphs = compiled_graphs()
        runner.adapt(1, 1, str(two))  # another one is read into its place below
        for slot, (place, source) in enumerate([(0, ""), (1, str(one)), (2, str(two))]):
            runner.adapt(slot, place, source)
        found = _texts(runner)
    assert compiled_graphs() == graphs
    bound = 1e-4 if kind == "cpu" else 2 * ROUNDING["float16"] * np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)
    assert np.abs(wanted[1] - wanted[0]).max() > 0.1
