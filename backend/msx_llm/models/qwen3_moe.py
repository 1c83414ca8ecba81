"""Qwen 3 with experts: its attention, and experts in place of the MLP in most layers."""

from msx_llm.models.config import DecoderConfig
from msx_llm.models.experts import EXPERT_KEYS, spread_experts
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral
from msx_llm.models.qwen2 import window_of

KV_HEADS = 4
SHARED = "shared_expert_intermediate_size"
SIZES = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}
MEMBERS = ConfigMembers(
    (READ | EXPERT_KEYS | {"attention_bias", "sliding_window", "use_sliding_window"}) - {SHARED},
    {**NEUTRAL, "use_qk_norm": (None, True), "qk_norm": (None, True), SHARED: (None, 0)},
    IGNORED | {"mlp_bias", "max_window_layers", "qkv_bias", "layer_types"},
)


def configure(hub: HubConfig) -> DecoderConfig:
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        qk_norm=True,
        qkv_bias=bool(hub.attention_bias),
        o_bias=bool(hub.attention_bias),
        windows=(window_of(hub),) * hub.num_hidden_layers,
        experts=spread_experts(hub, hub.num_hidden_layers, SIZES),
    )
