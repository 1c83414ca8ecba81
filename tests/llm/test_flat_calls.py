"""A change of any shape, type, layout, order or value in a call of an NPU's operator is noticed: the emulation refuses
it, or the logits are not those of a CPU any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llm.call_changes import (
    TEXTS,
    Change,
    Scenario,
    as_type,
    backwards,
    filled,
    heads_apart,
    instead,
    plus,
    rolled,
    turned,
)
from tests.llm.flat_models import assert_near, emulation
from tests.llm.runners import limits, make_runner
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

CHANGES: list[tuple[str, str, Change]] = [
    ("ReshapeAndCache", "key", heads_apart),
    ("ReshapeAndCache", "key", as_type("float32")),
    ("ReshapeAndCache", "key", backwards),
    ("ReshapeAndCache", "value", backwards),
    ("ReshapeAndCache", "value", instead(None)),
    ("ReshapeAndCache", "key_cache", as_type("bfloat16")),
    ("ReshapeAndCache", "slot_mapping", as_type("int64")),
    ("ReshapeAndCache", "slot_mapping", plus(1)),
    ("ReshapeAndCache", "slot_mapping", rolled),
    ("FlashAttentionScore", "head_num", instead(2)),
    ("FlashAttentionScore", "scale_value", plus(0.2)),
    ("FlashAttentionScore", "input_layout", instead("BSH")),
    ("FlashAttentionScore", "query", backwards),
    ("FlashAttentionScore", "key", heads_apart),
    ("FlashAttentionScore", "value", backwards),
    ("FlashAttentionScore", "attn_mask", filled(0)),
    ("FlashAttentionScore", "attn_mask", as_type("float32")),
    ("FlashAttentionScore", "attn_mask", instead(None)),
    ("FlashAttentionScore", "actual_seq_qlen", as_type("int64")),
    ("FlashAttentionScore", "actual_seq_qlen", instead(None)),
    ("FlashAttentionScore", "actual_seq_kvlen", plus(-1)),
    ("PagedAttention", "head_num", instead(2)),
    ("PagedAttention", "scale_value", plus(0.2)),
    ("PagedAttention", "kv_head_num", instead(1)),
    ("PagedAttention", "query", heads_apart),
    ("PagedAttention", "query", as_type("float32")),
    ("PagedAttention", "key_cache", filled(1)),
    ("PagedAttention", "value_cache", filled(1)),
    ("PagedAttention", "block_tables", as_type("int64")),
    ("PagedAttention", "block_tables", turned),
    ("PagedAttention", "context_lens", plus(-1)),
    ("PagedAttention", "context_lens", as_type("int64")),
    ("PagedAttention", "attn_mask", filled(0)),
    ("PagedAttention", "attn_mask", instead(None)),
    ("PagedAttention", "attn_mask", as_type("float32")),
    ("PagedAttention", "q_seq_lens", instead(None)),
    ("PagedAttention", "q_seq_lens", turned),
    ("ApplyRotaryPosEmb", "cos_format", instead(3)),
    ("ApplyRotaryPosEmb", "query", heads_apart),
    ("ApplyRotaryPosEmb", "key", as_type("float32")),
    ("ApplyRotaryPosEmb", "cos", backwards),
    ("ApplyRotaryPosEmb", "sin", filled(0)),
    ("ApplyRotaryPosEmb", "position_ids", as_type("int64")),
    ("RmsNorm", "epsilon", plus(1)),
    ("RmsNorm", "x", as_type("float32")),
    ("RmsNorm", "gamma", filled(3)),
    ("MatMul", "transpose_b", instead(False)),
    ("MatMul", "input", as_type("float32")),
    ("MatMul", "mat2", as_type("bfloat16")),
    ("SplitWithSize", "split_size", instead((32, 64, 32))),
    ("SplitWithSize", "dim", instead(0)),
    ("SiLU", "input", filled(0)),
    ("Mul", "other", filled(0)),
    ("Add", "other", filled(0)),
    ("Gather", "input_indices", plus(1)),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    changes: dict[str, Any] = {"num_hidden_layers": 1, "layer_types": None}
    return make_wide("qwen3", tmp_path_factory.mktemp("wide") / "model", **changes)


@pytest.fixture(scope="module")
def scenario(model: Path) -> Scenario:
    return Scenario(model)


@pytest.fixture(scope="module")
def wanted(model: Path) -> Any:
    runner = make_runner("qwen3", limits(prefills=(64,)), folder=model)
    first, second = (runner.prefill(0, 0, text, all_logits=True) for text in TEXTS)
    return np.stack([first[9], second[4], first[15], second[5], first[16]])


def test_without_a_change_it_is_right(scenario: Scenario, wanted: Any) -> None:
    for _ in range(2):
        with emulation():
            assert_near(scenario.logits(), wanted, "float16")


@pytest.mark.parametrize(
    ("operator", "name", "change"), CHANGES, ids=[f"{it[0]}-{it[1]}-{n}" for n, it in enumerate(CHANGES)]
)
def test_a_change_is_noticed(operator: str, name: str, change: Change, scenario: Scenario, wanted: Any) -> None:
    from tests.emulated_ascend.refused import Refused
    from tests.emulated_ascend.registry import Change as ChangeOnce

    once = ChangeOnce(operator, name, change)
    with emulation(once), pytest.raises((Refused, AssertionError)):
        scenario.assert_unchanged(wanted)
    assert once.done, f"{operator} was not called"
