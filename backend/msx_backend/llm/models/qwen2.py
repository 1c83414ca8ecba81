"""Qwen 2 and 2.5: queries, keys and values have a bias; a window is on in some layers, if at all."""

from msgspec import UNSET

from msx_backend.llm.models.config import HubConfig, ModelConfig, neutral, windows_of

WINDOW, KV_HEADS = 4096, 32


def configure(hub: HubConfig) -> ModelConfig:
    return neutral(hub, kv_heads=KV_HEADS, qkv_bias=True, windows=windows(hub))


def windows(hub: HubConfig) -> tuple[int | None, ...]:
    window = WINDOW if hub.sliding_window is UNSET else hub.sliding_window
    return windows_of(hub, window if hub.use_sliding_window else None, first=hub.max_window_layers)
