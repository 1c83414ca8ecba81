"""MiniMax M2: queries and keys are normed over all heads, a part of each head turns, and experts have sigmoids."""

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.mixtral import KEYS, NAMES, named_experts
from msx_llm.models.neutral import neutral, rope_of, turning_of

KV_HEADS, HEAD_DIM, EXPERTS, CHOSEN, THETA = 8, 128, 256, 8, 5000000.0
QK = {"use_qk_norm": (None, True), "qk_norm_type": (None, "per_layer")}
OTHERS = {"scoring_func": (None, "sigmoid"), "use_routing_bias": (None, True), "shared_intermediate_size": (None, 0)}
MEMBERS = ConfigMembers(
    READ | KEYS | {"partial_rotary_factor", "rotary_dim"},
    {**NEUTRAL, **QK, **OTHERS},
    IGNORED
    | {"attention_bias", "mlp_bias", "mtp_transformer_layers", "num_mtp_modules", "router_jitter_noise", "use_mtp"},
)


def configure(hub: HubConfig) -> DecoderConfig:
    rope, size = rope_of(hub, THETA), hub.head_dim or HEAD_DIM
    names = (*NAMES, ("gate.e_score", "e_score"))
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        rope=rope,
        rotary_dim=turning_of(hub, rope, HEAD_DIM, share=(hub.rotary_dim or size) / size),
        qk_norm_whole=True,
        experts=named_experts(hub, EXPERTS, CHOSEN, names, sigmoid=True),
    )
