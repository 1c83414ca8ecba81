"""Qwen 2 and 2.5: queries, keys and values have a bias; some layers may have a window."""

from msgspec import UNSET

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, windows_of

WINDOW, KV_HEADS = 4096, 32
WINDOWS = frozenset({"sliding_window", "use_sliding_window", "max_window_layers", "layer_types"})
MEMBERS = ConfigMembers(READ | WINDOWS, NEUTRAL, IGNORED | {"attention_bias", "mlp_bias"})


def configure(hub: HubConfig) -> DecoderConfig:
    return neutral(hub, kv_heads=KV_HEADS, qkv_bias=True, windows=windows(hub))


def windows(hub: HubConfig) -> tuple[int | None, ...]:
    return windows_of(hub, window_of(hub), lambda layer: layer >= hub.max_window_layers)


def window_of(hub: HubConfig) -> int | None:
    window = WINDOW if hub.sliding_window is UNSET else hub.sliding_window
    return window if hub.use_sliding_window else None
