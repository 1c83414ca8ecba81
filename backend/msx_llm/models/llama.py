"""Llama 2 and 3, and the many models that say they are one.

A `sliding_window` is refused: transformers forgets it in one pass over a text, and keeps to it token by token.
"""

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, windows_of

MEMBERS = ConfigMembers(READ | {"attention_bias", "mlp_bias", "layer_types"}, NEUTRAL, IGNORED)


def configure(hub: HubConfig) -> DecoderConfig:
    bias = bool(hub.attention_bias)
    return neutral(hub, qkv_bias=bias, o_bias=bias, mlp_bias=hub.mlp_bias, windows=windows_of(hub, None))
