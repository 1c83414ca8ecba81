"""Families with gated delta nets: what their files say, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_llm.adapters.weights import adaptable
from msx_llm.division import check_division, with_drafts
from msx_llm.kernels.devices import engine_device
from msx_llm.models.weights import shapes
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel
from tests.llm.models.test_config import read

KINDS = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")


@pytest.mark.parametrize("kind", KINDS)
def test_every_fourth_layer_attends(tmp_path: Path, kind: str) -> None:
    config = read(tmp_path, kind, num_hidden_layers=5)
    assert [config.attends(layer) for layer in range(5)] == [False, False, False, True, False]
    assert (config.head_dim, config.rotary_dim, config.norm_offset) == (256, 64, 1.0)
    assert not adaptable(config)
    given = ["full_attention", "linear_attention"]
    assert read(tmp_path, kind, num_hidden_layers=2, layer_types=given).attends(0)


def test_experts_of_both(tmp_path: Path) -> None:
    one = read(tmp_path, "qwen3_next", mlp_only_layers=[1], num_experts=8, num_experts_per_tok=2).experts
    assert one is not None
    assert (one.normed, one.gated, one.shared, one.layers[:3]) == (True, True, 512, (True, False, True))
    assert read(tmp_path, "qwen3_next", num_experts=0).experts is None
    assert read(tmp_path, "qwen3_5_text").experts is None
    of_35 = read(tmp_path, "qwen3_5_moe_text", intermediate_size="absent").experts
    assert of_35 is not None
    assert (of_35.count, of_35.chosen, of_35.normed, all(of_35.layers)) == (256, 8, True, True)


def test_tensors_of_both(tmp_path: Path) -> None:
    sizes = {"num_hidden_layers": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 6, "hidden_size": 64}
    sizes |= {"linear_key_head_dim": 8, "linear_value_head_dim": 4, "head_dim": 16, "num_experts": 0}
    found = dict(shapes(read(tmp_path, "qwen3_next", **sizes), ""))
    assert found["layers.0.linear_attn.in_proj_qkvz.weight"] == (2 * 8 * 2 + 6 * 4 * 2, 64)
    assert found["layers.0.linear_attn.in_proj_ba.weight"] == (2 * 6, 64)
    assert found["layers.0.linear_attn.conv1d.weight"] == (2 * 8 * 2 + 6 * 4, 1, 4)
    assert found["layers.3.self_attn.q_proj.weight"] == (2 * 8 * 16, 64)
    del sizes["num_experts"]
    found = dict(shapes(read(tmp_path, "qwen3_5_text", **sizes), ""))
    assert found["layers.0.linear_attn.in_proj_qkv.weight"] == (2 * 8 * 2 + 6 * 4, 64)
    assert found["layers.0.linear_attn.in_proj_z.weight"] == (6 * 4, 64)
    assert "layers.0.linear_attn.A_log" in found


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"layer_types": ["full_attention"]}, r"layer_types: \['full_attention'\] has 1 entries for 3 layers"),
        ({"layer_types": ["sliding_attention"] * 3}, "layer_types: sliding_attention is unknown"),
        (
            {"num_hidden_layers": 4, "linear_num_key_heads": 5},
            "linear_num_key_heads: 5 does not divide linear_num_value_heads: 32",
        ),
        ({"num_hidden_layers": 4, "attn_output_gate": False}, "attn_output_gate: false changes what a model computes"),
        (
            {"num_hidden_layers": 4, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}},
            "quantization_config: weights of qwen3_next that stay integers are not served",
        ),
    ],
)
def test_what_cannot_be(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(HandlerLoadError, match=said):
        read(tmp_path, "qwen3_next", **keys)


def test_an_npu_has_no_cells_for_them(tmp_path: Path) -> None:
    config = read(tmp_path, "qwen3_next", num_hidden_layers=4)
    engine_device("CPU").check_model(config)
    with pytest.raises(
        HandlerLoadError, match="model_type: qwen3_next: there is no MindSpore code of gated delta nets"
    ):
        engine_device("Ascend").check_model(config)
    engine_device("Ascend").check_model(read(tmp_path))


def test_heads_of_keys_are_divided(tmp_path: Path) -> None:
    config = read(tmp_path, "qwen3_next", num_hidden_layers=4, linear_num_key_heads=1)
    with pytest.raises(
        HandlerLoadError, match="linear_num_key_heads: 1 cannot be divided evenly over tensorParallel: 2"
    ):
        check_division(config, Parallel(tp_size=2))


def test_memory_of_tokens_and_of_texts(tmp_path: Path) -> None:
    sizes = {
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 4,
    }
    config = read(tmp_path, "qwen3_5_text", num_hidden_layers=8, head_dim=16, **sizes)
    state = 3 * (2 * 16 + 16) + 4 * 8 * 4
    assert config.token_bytes() == 2 * 2 * 2 * 16 * 4
    assert config.text_bytes() == 6 * 2 * state * 4
    assert (config.token_bytes(stages=4), config.text_bytes(stages=4)) == (2 * 2 * 16 * 4, 2 * 2 * state * 4)
    assert config.text_bytes(shards=2) == config.text_bytes() // 2
    assert with_drafts(config, 2).text_bytes() == config.text_bytes() * 2, "a state more for each stage"
    assert read(tmp_path).text_bytes() == 0
