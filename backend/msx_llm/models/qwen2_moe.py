"""Qwen 2 with experts, and beside them one with a gate that every token takes."""

from msx_llm.models.config import DecoderConfig
from msx_llm.models.experts import EXPERT_KEYS, spread_experts
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, windows_of
from msx_llm.models.qwen2 import WINDOWS, window_of

KV_HEADS = 16
SIZES = {
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632,
}
MEMBERS = ConfigMembers(READ | EXPERT_KEYS | WINDOWS | {"qkv_bias"}, NEUTRAL, IGNORED | {"attention_bias", "mlp_bias"})


def configure(hub: HubConfig) -> DecoderConfig:
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        qkv_bias=hub.qkv_bias,
        windows=windows_of(hub, window_of(hub), lambda layer: layer % 2 == 0 and layer < hub.max_window_layers),
        experts=spread_experts(hub, hub.num_hidden_layers, SIZES),
    )
