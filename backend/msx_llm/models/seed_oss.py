"""Seed-OSS: a Llama whose attention has a bias of its own for the output, and heads of a size of their own."""

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral

KV_HEADS, HEAD_DIM = 8, 128
MEMBERS = ConfigMembers(READ | {"attention_bias", "attention_out_bias", "mlp_bias"}, NEUTRAL, IGNORED)


def configure(hub: HubConfig) -> DecoderConfig:
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        qkv_bias=hub.attention_bias is not False,
        o_bias=hub.attention_out_bias,
        mlp_bias=hub.mlp_bias,
    )
