"""Mistral: a Llama whose layers have a window."""

from msgspec import UNSET

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, windows_of

WINDOW, KV_HEADS = 4096, 8
MEMBERS = ConfigMembers(READ | {"sliding_window", "layer_types"}, NEUTRAL, IGNORED | {"attention_bias", "mlp_bias"})


def configure(hub: HubConfig) -> DecoderConfig:
    window = WINDOW if hub.sliding_window is UNSET else hub.sliding_window
    return neutral(hub, kv_heads=KV_HEADS, windows=windows_of(hub, window))
