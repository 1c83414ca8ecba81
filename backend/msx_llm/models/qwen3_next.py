"""Qwen 3 Next: gated delta nets in three of four layers, attention with a gate in the fourth, and experts."""

from msgspec.structs import replace

from msx_llm.models.config import DecoderConfig
from msx_llm.models.delta import DELTA_KEYS
from msx_llm.models.delta_layers import delta_of
from msx_llm.models.experts import EXPERT_KEYS, ExpertsConfig, spread_experts
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, rope_of, turning_of

KV_HEADS, HEAD_DIM, TURNING = 2, 256, 0.25
SIZES = {
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}
KEYS = {"attention_bias", "layer_types", "partial_rotary_factor"}
FIXED = {**NEUTRAL, "attn_output_gate": (None, True), "output_gate_type": (None, "swish")}
MEMBERS = ConfigMembers(READ | DELTA_KEYS | EXPERT_KEYS | KEYS, FIXED, IGNORED | {"mlp_bias"})


def configure(hub: HubConfig) -> DecoderConfig:
    return with_nets(hub, by_heads=True, experts=_experts(hub))


def with_nets(
    hub: HubConfig,
    *,
    by_heads: bool,
    kv_heads: int = KV_HEADS,
    experts: ExpertsConfig | None = None,
    fused: tuple[str, ...] = (),
) -> DecoderConfig:
    """The configuration of all families with such layers. Raises HandlerLoadError."""
    rope = rope_of(hub)
    return neutral(
        hub,
        kv_heads=kv_heads,
        head_dim=HEAD_DIM,
        rope=rope,
        rotary_dim=turning_of(hub, rope, HEAD_DIM, TURNING),
        qk_norm=True,
        qkv_bias=bool(hub.attention_bias),
        o_bias=bool(hub.attention_bias),
        norm_offset=1.0,
        gated=True,
        delta=delta_of(hub, by_heads=by_heads),
        experts=experts,
        fused=fused,
    )


def _experts(hub: HubConfig) -> ExpertsConfig | None:
    """None: every layer has one MLP. Raises HandlerLoadError."""
    if hub.num_experts == 0:
        return None
    return replace(spread_experts(hub, hub.num_hidden_layers, SIZES), normed=hub.norm_topk_prob is not False)
