"""Mistral: a Llama whose layers have a window."""

from msgspec import UNSET

from msx_backend.llm.models.config import READ, DecoderConfig, HubConfig, neutral, windows_of
from msx_backend.llm.models.members import IGNORED, NEUTRAL, ConfigMembers

WINDOW, KV_HEADS = 4096, 8
MEMBERS = ConfigMembers(READ | {"sliding_window", "layer_types"}, NEUTRAL, IGNORED | {"attention_bias", "mlp_bias"})


def configure(hub: HubConfig) -> DecoderConfig:
    window = WINDOW if hub.sliding_window is UNSET else hub.sliding_window
    return neutral(hub, kv_heads=KV_HEADS, windows=windows_of(hub, window))
