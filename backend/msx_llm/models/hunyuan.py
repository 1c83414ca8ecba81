"""Hunyuan 1, dense: queries and keys are normed for each head, behind their turn."""

from typing import Any

from msx_llm.models.config import DecoderConfig, LayerNorms
from msx_llm.models.hub import READ, HubConfig, wrong_key
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import head_size, neutral, rope_of

NORMS = LayerNorms(query="self_attn.query_layernorm", key="self_attn.key_layernorm")
QK = {"use_qk_norm": (None, True)}
MEMBERS = ConfigMembers(
    READ | {"attention_bias"}, {**NEUTRAL, **QK, "use_cla": (None, False)}, IGNORED | {"eod_token_id", "mlp_bias"}
)


def configure(hub: HubConfig) -> DecoderConfig:
    bias = bool(hub.attention_bias)
    return neutral(hub, rope=_rope(hub), norms=NORMS, qk_norm=True, qk_norm_last=True, qkv_bias=bias, o_bias=bias)


def _rope(hub: HubConfig) -> dict[str, Any]:
    """`alpha` of a dynamic rope turns all texts slower, whatever their length."""
    rope, size = rope_of(hub), head_size(hub)
    if rope["rope_type"] != "dynamic" or not (alpha := rope.get("alpha")):
        return rope
    if size < 4:
        raise wrong_key("head_dim", size, "is below 4, which a dynamic rope needs")
    return {"rope_type": "default", "rope_theta": rope["rope_theta"] * alpha ** (size / (size - 2))}
