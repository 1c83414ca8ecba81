"""Keys of `config.json`, family by family."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_core.unknown_families import unknown_family
from msx_llm.division import check_division
from msx_llm.models.config import DecoderConfig
from msx_llm.models.registry import FAMILIES, read_config
from msx_llm.models.text_part import TEXT_PARTS
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel
from tests.core.model_types import rows

SMALL = {
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}


def read(folder: Path, model_type: str = "llama", **keys: Any) -> DecoderConfig:
    keys = {key: value for key, value in ({"model_type": model_type} | SMALL | keys).items() if value != "absent"}
    (folder / "config.json").write_text(json.dumps(keys))
    return read_config(folder)


@pytest.mark.parametrize(("kind", "server", "near"), [row for row in rows() if row[1] != "own"])
def test_the_type_is_looked_at_before_all_other_keys(tmp_path: Path, kind: str, server: str, near: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, "text_config": {"vocab_size": 8}}))
    with pytest.raises(HandlerLoadError) as caught:
        read_config(tmp_path)
    assert str(caught.value) == unknown_family(kind, (*FAMILIES, *TEXT_PARTS))


def test_a_text_part_is_an_object(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match=r"config.json, text_config: expected an object"):
        read(tmp_path, "gemma3", text_config=[1])


def test_sizes_and_what_follows_from_them(tmp_path: Path) -> None:
    config = read(tmp_path, torch_dtype="bfloat16", rms_norm_eps=1e-5)
    assert (config.heads, config.kv_heads, config.group, config.head_dim) == (8, 2, 4, 8)
    assert (config.layers, config.context, config.dtype, config.norm_eps) == (3, 512, "bfloat16", 1e-5)
    assert not config.tied
    assert config.windows == (None, None, None)


def test_a_token_takes_keys_and_values_of_the_largest_stage(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert config.token_bytes() == 3 * 2 * 2 * 8 * 4
    assert config.token_bytes(stages=2, shards=2) == 2 * 2 * 1 * 8 * 4


@pytest.mark.parametrize(
    ("stated", "computed", "size"),
    [
        ("float32", "bfloat16", 2),
        ("float16", "float16", 2),
        ("bfloat16", "bfloat16", 2),
        ("float8_e4m3fn", "bfloat16", 2),
    ],
)
def test_what_a_device_computes_in_is_what_its_cache_holds(
    stated: str, computed: str, size: int, tmp_path: Path
) -> None:
    config = read(tmp_path, torch_dtype=stated)
    assert (config.dtype_on("CPU"), config.dtype_on("Ascend")) == ("float32", computed)
    assert config.token_bytes(target="Ascend") * 4 == config.token_bytes() * size


def test_llama_2_has_as_many_key_value_heads_as_heads(tmp_path: Path) -> None:
    assert read(tmp_path, num_key_value_heads="absent").kv_heads == 8


@pytest.mark.parametrize(
    ("model_type", "keys", "qkv", "o", "mlp"),
    [
        ("llama", {}, False, False, False),
        ("llama", {"attention_bias": True}, True, True, False),
        ("llama", {"mlp_bias": True}, False, False, True),
        ("mistral", {}, False, False, False),
        ("qwen2", {}, True, False, False),
        ("qwen3", {}, False, False, False),
        ("qwen3", {"attention_bias": True}, True, True, False),
        ("phi3", {}, False, False, False),
        ("glm4", {}, False, False, False),
        ("glm4", {"attention_bias": True}, True, False, False),
        ("gemma3_text", {}, False, False, False),
    ],
)
def test_biases(tmp_path: Path, model_type: str, keys: dict[str, Any], qkv: bool, o: bool, mlp: bool) -> None:
    config = read(tmp_path, model_type, **keys)
    assert (config.qkv_bias, config.o_bias, config.mlp_bias) == (qkv, o, mlp)


def test_qwen3_norms_its_heads_whose_size_is_their_own(tmp_path: Path) -> None:
    assert read(tmp_path, "qwen3").qk_norm
    assert read(tmp_path, "qwen3").head_dim == 128
    assert read(tmp_path, "qwen3", head_dim=32).head_dim == 32
    assert not read(tmp_path, "qwen2").qk_norm


@pytest.mark.parametrize(
    ("model_type", "keys", "windows"),
    [
        ("mistral", {}, (4096, 4096, 4096)),
        ("mistral", {"sliding_window": 16}, (16, 16, 16)),
        ("mistral", {"sliding_window": None}, (None, None, None)),
        ("qwen2", {"sliding_window": 16}, (None, None, None)),
        ("qwen2", {"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 1}, (None, 16, 16)),
        ("phi3", {}, (None, None, None)),
        ("phi3", {"sliding_window": 16}, (16, 16, 16)),
        ("gemma3_text", {"sliding_window": 16, "sliding_window_pattern": 2}, (16, None, 16)),
        (
            "qwen3",
            {
                "sliding_window": 16,
                "use_sliding_window": True,
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            },
            (16, None, 16),
        ),
    ],
)
def test_windows(tmp_path: Path, model_type: str, keys: dict[str, Any], windows: tuple[int | None, ...]) -> None:
    assert read(tmp_path, model_type, **keys).windows == windows


@pytest.mark.parametrize(
    "keys",
    [
        {"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2.0}},
        {"rope_theta": 5e5, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 5e5, "factor": 2.0}},
    ],
)
def test_both_ages_of_rope_keys(tmp_path: Path, keys: dict[str, Any]) -> None:
    assert read(tmp_path, **keys).rope == {"rope_type": "linear", "rope_theta": 5e5, "factor": 2.0}


def test_the_older_rope_key_wins(tmp_path: Path) -> None:
    """As in transformers, where a file has both; an empty one is none."""
    newer = {"rope_type": "llama3", "rope_theta": 5e5}
    older = {"rope_type": "linear", "factor": 2.0}
    assert read(tmp_path, rope_parameters=newer, rope_scaling=older).rope == older | {"rope_theta": 10000.0}
    assert read(tmp_path, rope_parameters={"rope_theta": 5e5}, rope_scaling={}).rope["rope_theta"] == 5e5


def test_yarn_stretches_the_context_that_the_file_states(tmp_path: Path) -> None:
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
    assert read(tmp_path, "qwen2", rope_scaling=yarn).context == 2048


def test_longrope_of_both_ages(tmp_path: Path) -> None:
    factors = {"short_factor": [1.0] * 3, "long_factor": [2.0] * 3}
    older = {"partial_rotary_factor": 0.75, "rope_theta": 1e4, "rope_scaling": {"type": "su"} | factors}
    inside = {"partial_rotary_factor": 0.75, "original_max_position_embeddings": 128, "rope_theta": 1e4}
    newer = {"rope_parameters": {"rope_type": "longrope"} | factors | inside}
    outside = {"original_max_position_embeddings": 128}
    found = [read(tmp_path, "phi3", **keys) for keys in (older | outside, newer | outside)]
    assert [(it.native, it.context, it.stretches, it.turning) for it in found] == [(128, 512, True, 6)] * 2
    assert found[0].rope["rope_type"] == found[1].rope["rope_type"] == "longrope"


def test_gemmas_ropes_of_both_ages(tmp_path: Path) -> None:
    older = {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    whole = {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}
    newer = {"full_attention": whole, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
    one, other = read(tmp_path, "gemma3_text", **older), read(tmp_path, "gemma3_text", rope_parameters=newer)
    assert one == other
    assert one.ropes == (whole, {"rope_type": "default", "rope_theta": 1e4})
    plain = read(tmp_path, "gemma3_text", sliding_window_pattern=2)
    assert [plain.rope_of(layer) for layer in range(3)] == [1, 0, 1]
    assert plain.tied


def test_a_glm_turns_half_of_each_head(tmp_path: Path) -> None:
    assert (read(tmp_path, "glm4").turning, read(tmp_path, "glm4", partial_rotary_factor=0.25).turning) == (64, 32)
    assert read(tmp_path, "glm4", rope_parameters={"partial_rotary_factor": 1.0}).turning == 128


def test_granites_states_are_divided_by_what_a_sublayer_is_multiplied_by(tmp_path: Path) -> None:
    factors = {"embedding_multiplier": 12, "logits_scaling": 8, "residual_multiplier": 0.25}
    config = read(tmp_path, "granite", rms_norm_eps=1e-5, **factors)
    assert (config.embedding_scale, config.norm_eps, config.logits_factor) == (48, 1.6e-4, 0.125)
    assert config.attention_scale == 1
    assert read(tmp_path, "granite", attention_multiplier=0.1).attention_scale == 0.1


def test_layers_of_smollm3_that_do_not_know_positions(tmp_path: Path) -> None:
    assert read(tmp_path, "smollm3", num_hidden_layers=4).local_layers == (False, False, False, True)
    windowed = {"use_sliding_window": True, "sliding_window": 16, "no_rope_layer_interval": 2}
    config = read(tmp_path, "smollm3", **windowed)
    assert (config.local_layers, config.windows) == ((False, True, False), (None, 16, None))
    assert [config.ropes[config.rope_of(layer)].get("rope_theta") for layer in range(3)] == [2e6, None, 2e6]
    assert config.tied


def test_alpha_of_hunyuan_turns_all_texts_slower(tmp_path: Path) -> None:
    config = read(
        tmp_path, "hunyuan_v1_dense", rope_theta=100.0, rope_scaling={"type": "dynamic", "alpha": 4, "factor": 1}
    )
    assert config.rope == {"rope_type": "default", "rope_theta": 100 * 4 ** (8 / 6)}
    assert not config.stretches


@pytest.mark.parametrize(("beta", "context"), [(0.1, 64), (0, 512)])
def test_texts_of_ministral_3_end_where_queries_begin_to_grow(tmp_path: Path, beta: float, context: int) -> None:
    rope = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 8.0, "original_max_position_embeddings": 64}
    config = read(tmp_path, "ministral3", rope_parameters={**rope, "llama_4_scaling_beta": beta})
    assert config.context == context
    assert read(tmp_path, "ministral3", max_position_embeddings=262144).context == 16384


def test_kimi_k2_is_a_deepseek_v3(tmp_path: Path) -> None:
    sizes = {"n_group": 1, "topk_group": 1, "n_routed_experts": 16}
    kimi, deepseek = read(tmp_path, "kimi_k2", **sizes), read(tmp_path, "deepseek_v3", **sizes)
    assert msgspec.structs.replace(kimi, model_type="deepseek_v3") == deepseek


def test_layers_of_ernie_with_experts(tmp_path: Path) -> None:
    places = {"num_hidden_layers": 6, "moe_layer_start_index": 1, "moe_layer_end_index": 4, "moe_layer_interval": 2}
    experts = read(tmp_path, "ernie4_5_moe", **places).experts
    assert experts is not None
    assert experts.layers == (False, True, False, True, False, False)
    assert (experts.count, experts.chosen, experts.shared) == (64, 6, 2 * 1536)


def test_a_part_of_minimaxs_heads_turns(tmp_path: Path) -> None:
    config = read(tmp_path, "minimax_m2", rotary_dim=64, num_local_experts=8)
    assert (config.head_dim, config.turning, config.rope["rope_theta"]) == (128, 64, 5e6)


def test_seed_oss_has_biases_unless_it_says_otherwise(tmp_path: Path) -> None:
    assert read(tmp_path, "seed_oss").qkv_bias
    assert not read(tmp_path, "seed_oss", attention_bias=False).qkv_bias


def test_keys_of_pictures_in_older_files_are_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rope = {"type": "mrope", "mrope_section": [2, 1, 1]}
    config = read(tmp_path, "qwen2_5_vl", vision_config={"depth": 1}, image_token_id=5, rope_scaling=rope)
    assert (config.model_type, config.rope) == ("qwen2", {"rope_type": "default", "rope_theta": 10000.0})
    assert caplog.text == ""


def test_a_norm_over_all_heads_is_not_divided(tmp_path: Path) -> None:
    config = msgspec.structs.replace(read(tmp_path), qk_norm_whole=True)
    check_division(config, Parallel())
    with pytest.raises(HandlerLoadError, match="norms its queries and keys over all heads at once"):
        check_division(config, Parallel(tp_size=2))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"model_type": "gpt2"},
            "model_type: 'gpt2' is not a family that this engine knows; known are llama, mistral, ",
        ),
        (
            {"model_type": "glm4", "partial_rotary_factor": 0.01},
            "lets 1 of 128 numbers of a head turn; it must be even",
        ),
        ({"model_type": "gemma3_text", "hidden_activation": "relu"}, "hidden_activation: relu is not supported"),
        ({"hidden_size": "absent"}, "`hidden_size`"),
        ({"hidden_size": "wide"}, "config.json, hidden_size: expected `int`, got `str`"),
        ({"vocab_size": 0}, "config.json, vocab_size: expected `int` >= 1"),
        ({"num_hidden_layers": 1 << 32}, "config.json, num_hidden_layers: expected `int` <= 10000"),
        ({"num_key_value_heads": 3}, "num_key_value_heads: 3 does not divide num_attention_heads: 8"),
        ({"num_attention_heads": 10}, "num_attention_heads: 10 does not divide hidden_size: 64"),
        ({"head_dim": 7}, "head_dim: 7 is odd"),
        (
            {"model_type": "smollm3", "rope_scaling": {"type": "dynamic", "factor": 2.0}},
            "rope_type: dynamic is not supported beside layers without positions",
        ),
        ({"model_type": "smollm3", "no_rope_layers": [1]}, "no_rope_layers: [1] has 1 entries for 3 layers"),
        (
            {"model_type": "mixtral", "quantization_config": {"quant_method": "awq", "bits": 4}},
            "quantization_config: awq is not supported for this family",
        ),
        ({"hidden_act": "gelu"}, "hidden_act: gelu is not supported"),
        (
            {"quantization_config": {"quant_method": "bitsandbytes"}},
            "quantization_config: bitsandbytes is not supported",
        ),
        ({"model_type": "mistral", "layer_types": ["full_attention"]}, "has 1 entries for 3 layers"),
        ({"layer_types": ["sliding_attention"] * 3}, "layer_types: sliding_attention needs a sliding_window"),
        ({"model_type": "qwen3", "layer_types": ["linear_attention"] * 3}, "layer_types: linear_attention is unknown"),
    ],
)
def test_errors_name_key_and_value(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(HandlerLoadError) as caught:
        read(tmp_path, **keys)
    assert message in str(caught.value)


def test_a_folder_without_config_json(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match=r"config\.json cannot be read: No such file"):
        read_config(tmp_path)


def test_no_object(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(HandlerLoadError, match=r"config\.json: expected `object`, got `array`"):
        read_config(tmp_path)


def test_heads_of_a_rank(tmp_path: Path) -> None:
    """Where there are fewer key-value heads than ranks, neighbours have the same one."""
    config = read(tmp_path)
    assert [config.kv_heads_of(ranks) for ranks in (1, 2, 4, 8)] == [2, 1, 1, 1]
    assert [config.kv_copies(ranks) for ranks in (1, 2, 4, 8)] == [1, 1, 2, 4]
    assert config.token_bytes(shards=8) == config.token_bytes(shards=2)


def test_no_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(HandlerLoadError, match=r"config\.json: input data was truncated"):
        read_config(tmp_path)


def test_every_family_can_be_read(tmp_path: Path) -> None:
    for model_type in FAMILIES:
        assert read(tmp_path, model_type).model_type == model_type


def test_layers_with_experts(tmp_path: Path) -> None:
    keys = {"decoder_sparse_step": 2, "num_hidden_layers": 6, "mlp_only_layers": [3], "sliding_window": 0}
    experts = read(tmp_path, "qwen2_moe", num_experts=8, **keys).experts
    assert experts is not None
    assert experts.layers == (False, True, False, False, False, True)
    assert (experts.count, experts.chosen, experts.inner, experts.shared) == (8, 4, 1408, 5632)
    with pytest.raises(HandlerLoadError, match="num_experts_per_tok: 4 is more than there are experts: 3"):
        read(tmp_path, "qwen2_moe", num_experts=3)


def test_a_window_of_no_positions(tmp_path: Path) -> None:
    with pytest.raises(HandlerLoadError, match="sliding_window: 0 is not a number of positions"):
        read(tmp_path, "mistral", sliding_window=0)


def test_groups_of_experts(tmp_path: Path) -> None:
    given = {"n_routed_experts": 16, "n_group": 4, "topk_group": 2, "num_experts_per_tok": 4}
    experts = read(tmp_path, "deepseek_v3", first_k_dense_replace=1, n_shared_experts=2, **given).experts
    assert experts is not None
    assert (experts.groups, experts.chosen_groups, experts.normed, experts.factor) == (4, 2, True, 2.5)
    assert (experts.layers, experts.shared) == ((False, True, True), 2 * 2048)
    greedy = read(tmp_path, "deepseek_v2", **given).experts
    assert greedy is not None
    assert (greedy.groups, greedy.normed, greedy.factor) == (1, False, 1.0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"n_group": 3}, "n_group: 3 does not divide 16 experts"),
        ({"n_group": 16}, "n_group: 16 does not divide 16 experts into groups of two"),
        ({"topk_group": 1, "num_experts_per_tok": 5}, "topk_group: 1 of 4 groups do not have 5 experts"),
        ({"scoring_func": "softmax"}, "scoring_func"),
        ({"topk_method": "greedy"}, "topk_method"),
        ({"attention_bias": True}, "attention_bias"),
    ],
)
def test_what_groups_of_experts_cannot_be(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    given = {"n_routed_experts": 16, "n_group": 4, "topk_group": 2, "num_experts_per_tok": 4}
    with pytest.raises(HandlerLoadError, match=message):
        read(tmp_path, "deepseek_v3", **(given | keys))


def test_latent_attention(tmp_path: Path) -> None:
    yarn = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 64}
    config = read(tmp_path, "deepseek_v3", rope_scaling=yarn, q_lora_rank=None)
    assert config.latent is not None
    assert (config.latent.query_rank, config.latent.width, config.latent.query) == (None, 576, 192)
    assert (config.kv_heads, config.head_dim, config.cache_size()) == (1, 64, 576)
    assert config.attention_scale == pytest.approx(192**-0.5 * (0.1 * math.log(40) + 1) ** 2)
    assert config.token_bytes(shards=4, target="Ascend") == 3 * 576 * 4 // 2
