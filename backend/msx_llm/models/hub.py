"""The keys of a model's `config.json`.

Keys, and what they mean where they are missing, are those of Hugging Face transformers. `members` says what becomes
of those that are not read.
"""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from msx_core.json_text import json_text
from msx_core.validation import wrong_value
from msx_core.values import show
from msx_llm.models.delta import DELTA_KEYS
from msx_llm.models.experts import EXPERT_KEYS
from msx_llm.models.key_types import Count, Epsilon, Factor, Layers, Positions, Share, Size, Theta
from msx_llm.models.latent import LATENT_KEYS, LatentKeys
from msx_llm.models.layer_keys import LAYER_KEYS
from msx_llm.models.members import FILE, shortened
from msx_llm.models.quantised.detect import METHODS
from msx_llm.models.rope_keys import check_rope_keys
from msx_sdk.errors import HandlerLoadError


class HubConfig(LatentKeys, frozen=True, kw_only=True):
    """The keys of `config.json` that at least one family reads."""

    model_type: str
    vocab_size: Size
    hidden_size: Size
    intermediate_size: Size
    num_hidden_layers: Layers
    num_attention_heads: Size
    num_key_value_heads: Size | None = None
    head_dim: Size | None = None
    max_position_embeddings: Positions
    original_max_position_embeddings: Positions | None = None
    hidden_act: str = "silu"
    hidden_activation: str | None = None
    rms_norm_eps: Epsilon = 1e-6
    rope_theta: Theta | None = None
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    rope_local_base_freq: Theta | None = None
    partial_rotary_factor: Share | None = None
    query_pre_attn_scalar: Factor | None = None
    tie_word_embeddings: bool | None = None
    attention_multiplier: Factor | None = None
    embedding_multiplier: Factor = 1.0
    logits_scaling: Factor = 1.0
    residual_multiplier: Factor = 1.0
    is_causal: bool | None = None
    attention_bias: bool | None = None
    attention_out_bias: bool = False
    mlp_bias: bool = False
    use_bias: bool = False
    use_qk_norm: bool = False
    rotary_dim: Size | None = None
    no_rope_layers: list[int] | None = None
    no_rope_layer_interval: Size | None = None
    qkv_bias: bool = True
    sliding_window: Annotated[int, Meta(ge=0)] | UnsetType | None = UNSET
    use_sliding_window: bool = False
    max_window_layers: int = 28
    layer_types: list[str] | None = None
    sliding_window_pattern: Size | None = None
    full_attention_interval: Size = 4
    linear_conv_kernel_dim: Annotated[int, Meta(ge=2, le=1024)] = 4
    linear_key_head_dim: Size = 128
    linear_value_head_dim: Size = 128
    linear_num_key_heads: Size = 16
    linear_num_value_heads: Size = 32
    global_head_dim: Size | None = 512
    num_global_key_value_heads: Size | None = None
    per_layer_config: dict[str, dict[str, Any]] | None = None
    attention_k_eq_v: bool = False
    num_kv_shared_layers: Count = 0
    use_double_wide_mlp: bool = False
    hidden_size_per_layer_input: Count | None = None
    vocab_size_per_layer_input: Size = 262_144
    enable_moe_block: bool = False
    top_k_experts: Size | None = None
    final_logit_softcapping: Annotated[float, Meta(ge=0)] | None = None
    torch_dtype: str | None = None
    dtype: str | None = None
    quantization_config: dict[str, Any] | None = None


READ = frozenset(HubConfig.__struct_fields__) - DELTA_KEYS - EXPERT_KEYS - LATENT_KEYS - LAYER_KEYS - {
    "attention_bias", "attention_multiplier", "attention_out_bias", "embedding_multiplier", "hidden_activation",
    "layer_types", "logits_scaling", "max_window_layers", "mlp_bias", "no_rope_layer_interval", "no_rope_layers",
    "partial_rotary_factor", "qkv_bias", "query_pre_attn_scalar", "residual_multiplier", "rope_local_base_freq",
    "rotary_dim", "sliding_window", "sliding_window_pattern", "use_bias", "use_qk_norm", "use_sliding_window",
}  # fmt: skip
"""Keys that every family reads; some families read the others."""


def read_raw(folder: Path) -> dict[str, Any]:
    """Reads all of `config.json`. Raises HandlerLoadError."""
    try:
        return msgspec.json.decode(json_text((folder / FILE).read_bytes()), type=dict[str, Any])
    except OSError as error:
        raise HandlerLoadError(f"{FILE} cannot be read: {error.strerror}; a model folder needs one") from None
    except msgspec.DecodeError as error:
        raise HandlerLoadError(f"{FILE}: {wrong_value(error)[1]}") from None
    except ValueError as error:
        raise HandlerLoadError(f"{FILE} is not JSON: {error}") from None


def hub_config(raw: dict[str, Any]) -> HubConfig:
    """Raises HandlerLoadError, which names the key and its value, or what is missing."""
    try:
        config = msgspec.convert(raw, HubConfig)
    except msgspec.ValidationError as error:
        key, expected = wrong_value(error)
        raise HandlerLoadError(f"{FILE}{f', {key}' if key else ''}: {expected}") from None
    check_rope_keys("rope_scaling", config.rope_scaling)
    check_rope_keys("rope_parameters", config.rope_parameters)
    _check(config)
    return config


def _check(hub: HubConfig) -> None:
    if hub.hidden_act not in ("silu", "swish"):
        raise wrong_key("hidden_act", hub.hidden_act, "is not supported; silu is")
    blocks_of_scales(hub)


def blocks_of_scales(hub: HubConfig) -> tuple[int, int] | None:
    """Rows and columns that have one scale, of a file with 8-bit floats. Raises HandlerLoadError."""
    given = hub.quantization_config
    if given is None:
        return None
    method, blocks = given.get("quant_method", "unnamed"), given.get("weight_block_size")
    if not isinstance(method, str):
        raise wrong_key("quantization_config.quant_method", show(method), "is not a name")
    if (hub.model_type, method) == ("gpt_oss", "mxfp4") or method in METHODS:
        return None
    if method != "fp8" or given.get("fmt", "e4m3") != "e4m3":
        raise wrong_key("quantization_config", method, "is not supported; take the checkpoint in bfloat16")
    if not isinstance(blocks, list) or len(blocks) != 2 or not all(isinstance(it, int) and it > 0 for it in blocks):
        raise wrong_key(
            "quantization_config.weight_block_size", show(blocks), "is not a number of rows and one of columns"
        )
    return blocks[0], blocks[1]


def wrong_key(key: str, value: object, why: str) -> HandlerLoadError:
    return HandlerLoadError(f"{FILE}, {key}: {shortened(str(value), 80)} {why}")
