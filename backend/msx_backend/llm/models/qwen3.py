"""Qwen 3: queries and keys are normed head by head, and the size of a head is its own."""

from msx_backend.llm.models.config import HubConfig, ModelConfig, neutral
from msx_backend.llm.models.qwen2 import KV_HEADS, windows

HEAD_DIM = 128


def configure(hub: HubConfig) -> ModelConfig:
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        qk_norm=True,
        qkv_bias=hub.attention_bias,
        o_bias=hub.attention_bias,
        windows=windows(hub),
    )
