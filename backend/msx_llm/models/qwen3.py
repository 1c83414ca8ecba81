"""Qwen 3: queries and keys are normed for each head, and the size of a head is a key of its own."""

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral
from msx_llm.models.qwen2 import KV_HEADS, WINDOWS, windows

HEAD_DIM = 128
MEMBERS = ConfigMembers(
    READ | WINDOWS | {"attention_bias"},
    {**NEUTRAL, "use_qk_norm": (None, True), "qk_norm": (None, True)},
    IGNORED | {"mlp_bias"},
)


def configure(hub: HubConfig) -> DecoderConfig:
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        qk_norm=True,
        qkv_bias=bool(hub.attention_bias),
        o_bias=bool(hub.attention_bias),
        windows=windows(hub),
    )
