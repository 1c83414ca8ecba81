"""GLM 4.5 and 4.6 with experts, chosen as DeepSeek V3's are; half of each head turns."""

from msx_llm.models.config import DecoderConfig
from msx_llm.models.deepseek import KEYS, experts_of
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, rope_of, turning_of

KV_HEADS, TURNING = 8, 0.5
SIZES = {
    "num_local_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1408,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "routed_scaling_factor": 1.0,
}
MEMBERS = ConfigMembers(
    (READ | KEYS | {"attention_bias", "partial_rotary_factor", "use_qk_norm"}) - {"moe_layer_freq", "topk_method"},
    {**NEUTRAL, "scoring_func": (None, "sigmoid"), "topk_method": (None, "noaux_tc"), "moe_layer_freq": (None, 1)},
    IGNORED | {"mlp_bias", "num_mtp_layers"},
)


def configure(hub: HubConfig) -> DecoderConfig:
    rope, normed = rope_of(hub), hub.norm_topk_prob is not False
    groups = {"groups": hub.n_group or 1, "chosen_groups": hub.topk_group or 1}
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        rope=rope,
        rotary_dim=turning_of(hub, rope, share=TURNING),
        qk_norm=hub.use_qk_norm,
        qkv_bias=bool(hub.attention_bias),
        experts=experts_of(hub, SIZES, sigmoid=True, normed=normed, **groups),
    )
