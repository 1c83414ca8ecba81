"""Layers that the keys of a Gemma 4 make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_llm.division import check_division
from msx_llm.kernels.ascend.blocks import block_size_of
from msx_llm.models.config import DecoderConfig
from msx_llm.models.weights import shapes
from msx_llm.sizing.parts import layer_parameters, token_bytes
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel
from tests.llm.models.test_config import read

KINDS = ["sliding_attention", "full_attention"] * 3
SHARING: dict[str, Any] = {"num_hidden_layers": 6, "layer_types": KINDS, "num_kv_shared_layers": 2}


def gemma(folder: Path, **keys: Any) -> DecoderConfig:
    return read(folder, "gemma4_text", **{"num_hidden_layers": 6, "layer_types": KINDS, **keys})


def test_heads_of_layers_that_see_all_have_a_size_of_their_own(tmp_path: Path) -> None:
    config = gemma(tmp_path)
    assert [config.of_layer(layer).head_dim for layer in range(2)] == [256, 512]
    assert {shape.kv_heads for shape in config.shapes} == {2}
    assert len(config.variants) == 2
    older = gemma(tmp_path, global_head_dim=64)
    newer = gemma(tmp_path, per_layer_config={"1": {"head_dim": 64}, "03": {"head_dim": 64}, "5": {"head_dim": 64}})
    assert older.shapes == newer.shapes


def test_one_layer_makes_keys_and_values(tmp_path: Path) -> None:
    config = gemma(tmp_path, attention_k_eq_v=True, num_global_key_value_heads=1)
    assert [(shape.kv_heads, shape.values_of_keys) for shape in config.shapes[:2]] == [(2, False), (1, True)]
    names = [name for name, _ in shapes(config, "model.")]
    assert "model.layers.0.self_attn.v_proj.weight" in names
    assert "model.layers.1.self_attn.v_proj.weight" not in names
    assert not gemma(tmp_path, num_global_key_value_heads=1).shapes[1].values_of_keys


def test_late_layers_read_the_last_one_of_their_kind(tmp_path: Path) -> None:
    config = gemma(tmp_path, num_kv_shared_layers=3, use_double_wide_mlp=True)
    assert [shape.source for shape in config.shapes] == [None, None, None, 1, 2, 1]
    assert [shape.intermediate_size for shape in config.shapes] == [96, 96, 96, 192, 192, 192]
    assert token_bytes(config, Parallel()) == (256 + 512 + 256) * 2 * 2 * 4 == config.token_bytes()
    names = [name for name, _ in shapes(config, "model.")]
    assert not [name for name in names if name.startswith("model.layers.3.self_attn.k_")]
    assert layer_parameters(config, 1, 4) < layer_parameters(config, 1, 2) + 3 * 64 * 96
    with pytest.raises(HandlerLoadError, match="num_kv_shared_layers: 5 leaves no layer of full_attention of its own"):
        gemma(tmp_path, num_kv_shared_layers=5)


def test_the_last_layer_sees_all(tmp_path: Path) -> None:
    config = gemma(tmp_path, layer_types=["sliding_attention"] * 6)
    assert config.windows == (512,) * 5 + (None,)
    assert read(tmp_path, "gemma4_unified_text", num_hidden_layers=6).windows == (1024,) * 5 + (None,)


def test_angles_of_both_kinds(tmp_path: Path) -> None:
    from msx_llm.models.rope import tables_of_all

    (whole, _), (local, _) = tables_of_all(gemma(tmp_path), 9)
    assert (whole.shape, local.shape) == ((9, 512), (9, 256))
    assert (whole[:, 64:256] == 1).all(), "a quarter of the pairs turns"
    assert whole[8, 63] != 1
    assert (local[1:, 0] != 1).all()


def test_inputs_of_layers(tmp_path: Path) -> None:
    assert gemma(tmp_path).layer_inputs == 256
    assert gemma(tmp_path, hidden_size_per_layer_input=0).layer_inputs == 0
    assert read(tmp_path, "gemma4_unified_text").layer_inputs == 0
    names = dict(shapes(gemma(tmp_path, vocab_size_per_layer_input=50), "model."))
    assert names["model.embed_tokens_per_layer.weight"] == (50, 6 * 256)


def test_stages_cannot_divide_what_layers_share(tmp_path: Path) -> None:
    two = Parallel(stages=2)
    check_division(gemma(tmp_path, hidden_size_per_layer_input=0), two)
    for keys in ({"hidden_size_per_layer_input": 8}, {"num_kv_shared_layers": 2, "hidden_size_per_layer_input": 0}):
        with pytest.raises(HandlerLoadError, match="cannot be divided over pipelineStages: 2; use tensorParallel"):
            check_division(gemma(tmp_path, **keys), two)


def test_every_kind_of_layer_is_divided(tmp_path: Path) -> None:
    config = gemma(tmp_path, attention_k_eq_v=True, num_global_key_value_heads=8)
    with pytest.raises(HandlerLoadError, match="num_key_value_heads: 8 cannot be divided evenly"):
        check_division(config, Parallel(tp_size=3))


def test_an_npu_takes_heads_up_to_256(tmp_path: Path) -> None:
    with pytest.raises(
        HandlerLoadError, match="head_dim: 512: attention on Ascend NPUs needs a multiple of 16, 256 at"
    ):
        block_size_of(gemma(tmp_path))
    assert block_size_of(gemma(tmp_path, head_dim=64, global_head_dim=256)) == 64


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"enable_moe_block": True}, "num_experts: None is not a number of 1 or more, which enable_moe_block needs"),
        (
            {"enable_moe_block": True, "num_experts": 2, "top_k_experts": 3, "moe_intermediate_size": 4},
            "num_experts_per_tok: 3 is more than there are experts: 2",
        ),
        ({"per_layer_config": {"1": {"sliding_window": 4}}}, "per_layer_config"),
        ({"use_bidirectional_attention": "all"}, 'use_bidirectional_attention: "all" changes what a model computes'),
        (
            {"attention_k_eq_v": True, "num_global_key_value_heads": 3},
            "num_global_key_value_heads: 3 does not divide 8",
        ),
        ({"hidden_activation": "relu"}, "hidden_activation: relu is not supported"),
    ],
)
def test_errors_name_key_and_value(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(HandlerLoadError) as caught:
        gemma(tmp_path, **keys)
    assert message in str(caught.value)


def test_what_bidirectional_pictures_do_is_no_matter_for_texts(tmp_path: Path) -> None:
    assert gemma(tmp_path, use_bidirectional_attention="vision").causal
