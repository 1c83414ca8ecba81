"""A change in a call of an operator that only some families or quantised weights have is noticed, as those of all are
(`test_flat_calls.py`): the emulation refuses it, or the logits differ by more than the rounding of 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llm.call_changes import (
    Change,
    Scenario,
    as_type,
    filled,
    instead,
    of_first,
    plus,
    rolled,
    turned,
)
from tests.llm.flat_models import emulation
from tests.llm.quantised_models import BY_ID, SIZES, WIDE, write_quantised
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

Model = Callable[[Path], Path]


def family(name: str, **changes: Any) -> Model:
    return lambda folder: make_wide(name, folder / "model", **changes)


def quantised(case: str, family: str = "qwen3") -> Model:
    def make(folder: Path) -> Path:
        plain = make_wide(family, folder / "plain", **{**SIZES, **WIDE.get(family, {})})
        return write_quantised(plain, BY_ID[case], folder)[0]

    return make


def swapped(tensors: Any) -> Any:
    """[E, in, out] -> [E, out, in], of a list of one"""
    return [tensors[0].swapaxes(1, 2)]


def other_experts(tensor: Any) -> Any:
    return ms.Tensor((tensor.asnumpy() + 1) % (tensor.asnumpy().max() + 1))


def without_sinks(query: Any) -> Any:
    """[T, N * 32], of which 16 are the head's own"""
    numbers = query.float().asnumpy().reshape(query.shape[0], -1, 32)
    numbers[..., 16:] = 0
    return ms.Tensor(numbers.reshape(query.shape)).astype(query.dtype)


def without_block_0(keys: Any) -> Any:
    numbers = keys.float().asnumpy()
    numbers[0] = 0
    return ms.Tensor(numbers).astype(keys.dtype)


def without_window(mask: Any) -> Any:
    """Mask without a window: a token sees all before it, behind the block of sinks."""
    numbers = mask.float().asnumpy()
    for row in numbers:
        row[128 : np.flatnonzero(row == 0)[-1]] = 0
    return ms.Tensor(numbers).astype(mask.dtype)


MODELS: dict[str, Model] = {
    "qwen3_moe": family("qwen3_moe"),
    "deepseek_v3": family("deepseek_v3"),
    "gemma3": family("gemma3"),
    "gpt_oss": family("gpt_oss", sliding_window=4),
    "W8A16": quantised("packed_8"),
    "W4A16": quantised("packed_4_zeros"),
    "W8A8": quantised("modelslim_w8a8"),
    "W8A8 dynamic": quantised("int_quantized"),
    "W8A16 experts": quantised("packed_8", "qwen3_moe"),
    "W8A8 experts": quantised("int_quantized", "qwen3_moe"),
}
DTYPES = {"W8A8 experts": "bfloat16"}
"""Types of the models that need another; the others have float16, which rounds less."""
CHANGES: list[tuple[str, str, str, Change]] = [
    ("qwen3_moe", "MoeGatingTopKSoftmax", "x", filled(0)),
    ("qwen3_moe", "MoeGatingTopKSoftmax", "finished", instead(True)),
    ("qwen3_moe", "MoeGatingTopKSoftmax", "k", plus(-1)),
    ("qwen3_moe", "MoeInitRoutingV2", "x", filled(0)),
    ("qwen3_moe", "MoeInitRoutingV2", "expert_idx", as_type("int64")),
    ("qwen3_moe", "MoeInitRoutingV2", "expert_idx", other_experts),
    ("qwen3_moe", "MoeInitRoutingV2", "active_num", instead(1)),
    ("qwen3_moe", "MoeInitRoutingV2", "expert_capacity", instead(1)),
    ("qwen3_moe", "MoeInitRoutingV2", "expert_num", instead(1)),
    ("qwen3_moe", "MoeInitRoutingV2", "drop_pad_mode", instead(1)),
    ("qwen3_moe", "MoeInitRoutingV2", "expert_tokens_count_or_cumsum_flag", instead(1)),
    ("qwen3_moe", "GroupedMatmulV4", "x", of_first(as_type("float32"))),
    ("qwen3_moe", "GroupedMatmulV4", "x", lambda tensors: tensors[0]),
    ("qwen3_moe", "GroupedMatmulV4", "weight", swapped),
    ("qwen3_moe", "GroupedMatmulV4", "weight", of_first(as_type("bfloat16"))),
    ("qwen3_moe", "GroupedMatmulV4", "group_list", as_type("int32")),
    ("qwen3_moe", "GroupedMatmulV4", "group_list", turned),
    ("qwen3_moe", "GroupedMatmulV4", "split_item", instead(0)),
    ("qwen3_moe", "GroupedMatmulV4", "group_type", instead(-1)),
    ("qwen3_moe", "GroupedMatmulV4", "group_list_type", instead(0)),
    ("qwen3_moe", "MoeTokenUnpermute", "permuted_tokens", as_type("float32")),
    ("qwen3_moe", "MoeTokenUnpermute", "sorted_indices", rolled),
    ("qwen3_moe", "MoeTokenUnpermute", "sorted_indices", as_type("int64")),
    ("qwen3_moe", "MoeTokenUnpermute", "probs", filled(1)),
    ("qwen3_moe", "MoeTokenUnpermute", "probs", as_type("bfloat16")),
    ("qwen3_moe", "MoeTokenUnpermute", "padded_mode", instead(True)),
    ("qwen3_moe", "Cast", "input_x", lambda tensor: tensor * 0),
    ("deepseek_v3", "FusedAddTopKDiv", "x", filled(0)),
    ("deepseek_v3", "FusedAddTopKDiv", "add_num", as_type("float16")),
    ("deepseek_v3", "FusedAddTopKDiv", "add_num", rolled),
    ("deepseek_v3", "FusedAddTopKDiv", "group_num", instead(3)),
    ("deepseek_v3", "FusedAddTopKDiv", "group_topk", plus(8)),
    ("deepseek_v3", "FusedAddTopKDiv", "n", plus(64)),
    ("deepseek_v3", "FusedAddTopKDiv", "k", plus(-1)),
    ("deepseek_v3", "FusedAddTopKDiv", "activate_type", instead(1)),
    ("deepseek_v3", "FusedAddTopKDiv", "is_norm", instead(False)),
    ("deepseek_v3", "FusedAddTopKDiv", "scale", plus(1)),
    ("deepseek_v3", "BatchMatMul", "x", as_type("float32")),
    ("deepseek_v3", "BatchMatMul", "y", filled(0)),
    ("deepseek_v3", "BatchMatMul", "transpose_a", instead(True)),
    ("deepseek_v3", "BatchMatMul", "transpose_b", instead(True)),
    ("deepseek_v3", "Tile", "input", filled(0)),
    ("deepseek_v3", "ReshapeAndCache", "key", as_type("float32")),
    ("deepseek_v3", "PagedAttention", "mla_v_dim", instead(0)),
    ("deepseek_v3", "PagedAttention", "kv_head_num", instead(2)),
    ("deepseek_v3", "PagedAttention", "value_cache", filled(1)),
    ("gemma3", "GeLU", "input", filled(0)),
    ("gpt_oss", "PagedAttention", "query", without_sinks),
    ("gpt_oss", "PagedAttention", "key_cache", without_block_0),
    ("gpt_oss", "PagedAttention", "block_tables", lambda tensor: tensor[:, 1:]),
    ("gpt_oss", "PagedAttention", "attn_mask", without_window),
    ("gpt_oss", "GroupedMatmulV4", "bias", of_first(filled(0))),
    ("gpt_oss", "GroupedMatmulV4", "bias", of_first(as_type("float32"))),
    ("gpt_oss", "GroupedMatmulV4", "bias", instead(None)),
    ("W8A16", "WeightQuantBatchMatmul", "x", as_type("float32")),
    ("W8A16", "WeightQuantBatchMatmul", "weight", as_type("int32")),
    ("W8A16", "WeightQuantBatchMatmul", "transpose_weight", lambda given: not given),
    ("W8A16", "WeightQuantBatchMatmul", "antiquant_scale", as_type("float32")),
    ("W8A16", "WeightQuantBatchMatmul", "antiquant_scale", filled(1)),
    ("W4A16", "WeightQuantBatchMatmul", "antiquant_offset", filled(0)),
    ("W4A16", "WeightQuantBatchMatmul", "antiquant_group_size", plus(32)),
    ("W8A8", "QuantV2", "x", as_type("float32")),
    ("W8A8", "QuantV2", "scale", filled(1)),
    ("W8A8", "QuantV2", "offset", filled(0)),
    ("W8A8", "QuantV2", "sqrt_mode", instead(True)),
    ("W8A8", "QuantV2", "rounding_mode", instead("TRUNC")),
    ("W8A8", "QuantBatchMatmul", "scale", filled(1)),
    ("W8A8", "QuantBatchMatmul", "bias", lambda tensor: tensor * 0),
    ("W8A8", "QuantBatchMatmul", "transpose_x2", instead(False)),
    ("W8A8 dynamic", "DynamicQuantExt", "x", as_type("float32")),
    ("W8A8 dynamic", "DynamicQuantExt", "smooth_scales", instead(1)),
    ("W8A8 dynamic", "QuantBatchMatmul", "x1", as_type("float16")),
    ("W8A8 dynamic", "QuantBatchMatmul", "x2", lambda tensor: tensor * 0),
    ("W8A8 dynamic", "QuantBatchMatmul", "dtype", instead(None)),
    ("W8A8 dynamic", "QuantBatchMatmul", "pertokenScaleOptional", filled(1)),
    ("W8A16 experts", "GroupedMatmulV4", "weight", of_first(as_type("float16"))),
    ("W8A16 experts", "GroupedMatmulV4", "antiquant_scale", of_first(lambda tensor: tensor * 2)),
    ("W8A16 experts", "GroupedMatmulV4", "antiquant_scale", of_first(as_type("float32"))),
    ("W8A16 experts", "GroupedMatmulV4", "antiquant_offset", of_first(filled(3))),
    ("W8A16 experts", "GroupedMatmulV4", "antiquant_offset", instead(None)),
    ("W8A8 experts", "DynamicQuantExt", "smooth_scales", instead(1)),
    ("W8A8 experts", "GroupedMatmulV4", "x", of_first(as_type("bfloat16"))),
    ("W8A8 experts", "GroupedMatmulV4", "scale", of_first(filled(1))),
    ("W8A8 experts", "GroupedMatmulV4", "scale", of_first(as_type("float32"))),
    ("W8A8 experts", "GroupedMatmulV4", "pre_token_scale", of_first(filled(1))),
    ("W8A8 experts", "GroupedMatmulV4", "pre_token_scale", instead(None)),
]


def scenario_of(kind: str, folder: Path) -> Scenario:
    return Scenario(MODELS[kind](folder), kind, DTYPES.get(kind, "float16"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Scenario, Any]]:
    """A model's scenario, and its logits if nothing is changed, which test_flat_runner.py and test_quantised_models.py
    hold against a CPU."""
    kept: dict[str, tuple[Scenario, Any]] = {}

    def of(kind: str) -> tuple[Scenario, Any]:
        if kind not in kept:
            scenario = scenario_of(kind, tmp_path_factory.mktemp(kind.replace(" ", "_")))
            with emulation():
                kept[kind] = scenario, scenario.logits()
        return kept[kind]

    return of


@pytest.mark.parametrize(
    ("kind", "operator", "name", "change"),
    CHANGES,
    ids=[f"{it[0]}-{it[1]}-{it[2]}-{n}" for n, it in enumerate(CHANGES)],
)
def test_a_change_is_noticed(kind: str, operator: str, name: str, change: Change, made: Any) -> None:
    from tests.emulated_ascend.refused import Refused
    from tests.emulated_ascend.registry import Change as ChangeOnce

    scenario, wanted = made(kind)
    once = ChangeOnce(operator, name, change)
    with emulation(once), pytest.raises((Refused, AssertionError)):
        scenario.assert_unchanged(wanted)
    assert once.done, f"{operator} was not called"
