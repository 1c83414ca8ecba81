"""Phi 3, 3.5 and 4 mini: one tensor for queries, keys and values, and LongRoPE for texts above the original length."""

from typing import Any

from msgspec import UNSET

from msx_llm.models.arrangement import FUSED
from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, rope_of, turning_of, windows_of

ORIGINAL = 4096
LONGROPE = ("su", "yarn", "longrope")
"""Names of LongRoPE in older and newer files."""
MEMBERS = ConfigMembers(
    READ | {"sliding_window", "layer_types", "partial_rotary_factor"},
    {**NEUTRAL, "full_attn_mod": (None, 1), "interpolate_factor": (None, 1)},
    IGNORED | {"attention_bias", "mlp_bias", "embed_layer"},
)


def configure(hub: HubConfig) -> DecoderConfig:
    window = None if hub.sliding_window is UNSET else hub.sliding_window
    rope = _rope(hub)
    return neutral(
        hub, rope=rope, windows=windows_of(hub, window), rotary_dim=turning_of(hub, rope), fused=tuple(FUSED)
    )


def _rope(hub: HubConfig) -> dict[str, Any]:
    rope = rope_of(hub)
    if rope["rope_type"] not in LONGROPE:
        return rope
    original = hub.original_max_position_embeddings or rope.get("original_max_position_embeddings") or ORIGINAL
    return rope | {"rope_type": "longrope", "original_max_position_embeddings": original}
