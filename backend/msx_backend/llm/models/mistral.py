"""Mistral: a Llama whose layers see a window of positions."""

from msgspec import UNSET

from msx_backend.llm.models.config import HubConfig, ModelConfig, neutral, windows_of

WINDOW, KV_HEADS = 4096, 8


def configure(hub: HubConfig) -> ModelConfig:
    window = WINDOW if hub.sliding_window is UNSET else hub.sliding_window
    return neutral(hub, kv_heads=KV_HEADS, windows=windows_of(hub, window))
