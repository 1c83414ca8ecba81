"""Texts with different adapters in one step: each has the logits of the model with its adapter merged."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.adapters.adapter import Adapter
from tests.llm.flat_models import ROUNDING, emulation
from tests.llm.peft_folders import make_adapter, merged, room
from tests.llm.runners import compiled_graphs, limits, make_runner
from tests.llm.wide_models import make_wide

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
    from msx_llm.adapters.weights import ATTENTION

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
    from msx_llm.kernels.ascend.factory import AscendKernels

    ms.runtime.launch_blocking()
    shape = limits(slots=(SLOTS,))
    model = make_wide(family, tmp_path / "model", num_hidden_layers=1, layer_types=None)
    one = make_adapter(model, tmp_path / "one", 1, targets=_targets(family))
    two = make_adapter(model, tmp_path / "two", 2, rank=8, targets=_targets(family), use_rslora=True)
    folders = [model, merged(model, one, tmp_path / "a", 2 / 4), merged(model, two, tmp_path / "b", 2 / 8**0.5)]
    wanted = np.concatenate([_texts(make_runner(family, shape, folder=folder), (0,)) for folder in folders])
    with emulation() if kind == "npu" else contextlib.nullcontext():
        kernels = AscendKernels(ms.float16) if kind == "npu" else None
        runner = make_runner(family, shape, folder=model, kernels=kernels, adapters=room(), graphs=True)
        runner.warm_up(lambda shape: None)
        graphs = compiled_graphs()
        runner.adapt(1, 1, Adapter("two", str(two)))  # another one is read into its place below
        for slot, (place, adapter) in enumerate(
            [(0, None), (1, Adapter("one", str(one))), (2, Adapter("two", str(two)))]
        ):
            runner.adapt(slot, place, adapter)
        found = _texts(runner)
    assert compiled_graphs() == graphs
    bound = 1e-4 if kind == "cpu" else 2 * ROUNDING["float16"] * np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)
    assert np.abs(wanted[1] - wanted[0]).max() > 0.1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rank": 3}, r"adapter sql: .*lora_A\.weight has the shape \(3, \d+\); this model and r make it \(4, \d+\)"),
        ({"name": "lm_head"}, "adapter sql: 'base_model.model.lm_head.lora_A.weight' is of no layer"),
        ({"cut": True}, "adapter sql: adapter_model.safetensors is not a safetensors file"),
    ],
)
def test_what_does_not_fit_is_found_when_the_model_loads(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    from msx_llm.adapters.catalog import packed_adapters, shape_of
    from msx_llm.models.registry import read_config
    from msx_sdk.errors import HandlerLoadError

    model = make_wide("llama", tmp_path / "model", num_hidden_layers=1, layer_types=None)
    file = make_adapter(model, model / "adapters" / "sql", 1) / "adapter_model.safetensors"
    config = read_config(model)
    assert shape_of(packed_adapters(model, None), config, None) is not None
    tensors = load_file(file)
    if "rank" in change:
        tensors = {name: value[:3] if "lora_A" in name else value[:, :3].copy() for name, value in tensors.items()}
    if "name" in change:
        tensors |= {f"base_model.model.lm_head.lora_{part}.weight": np.zeros((4, 4), np.float32) for part in "AB"}
    save_file(tensors, file)
    if "cut" in change:
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(HandlerLoadError, match=reason):
        shape_of(packed_adapters(model, None), config, None)
