"""GLM 4 (0414): half of each head turns, in neighbouring pairs; norms also after attention and MLP."""

from msx_llm.models.config import DecoderConfig, LayerNorms
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, rope_of, turning_of

KV_HEADS, HEAD_DIM, TURNING = 2, 128, 0.5
NORMS = LayerNorms(after_attention="post_self_attn_layernorm", after_mlp="post_mlp_layernorm")
MEMBERS = ConfigMembers(READ | {"attention_bias", "partial_rotary_factor"}, NEUTRAL, IGNORED | {"mlp_bias"})


def configure(hub: HubConfig) -> DecoderConfig:
    rope = rope_of(hub)
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        rope=rope,
        rotary_dim=turning_of(hub, rope, HEAD_DIM, TURNING),
        rotary_pairs=True,
        qkv_bias=bool(hub.attention_bias),
        norms=NORMS,
        fused=("mlp.gate_up_proj",),
    )
