"""Ministral 3: a Mistral with YaRN, whose queries grow with their position behind the original length.

No device here has that factor for queries alone, so texts end where it begins.
"""

from typing import Any

import msgspec
from msgspec import UNSET

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, rope_of, windows_of

KV_HEADS, HEAD_DIM, BETA = 8, 128, "llama_4_scaling_beta"
ROPE = {
    "rope_type": "yarn",
    "rope_theta": 1000000.0,
    "factor": 16.0,
    "original_max_position_embeddings": 16384,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    BETA: 0.1,
}
MEMBERS = ConfigMembers(READ | {"layer_types", "sliding_window"}, NEUTRAL, IGNORED | {"attention_bias", "mlp_bias"})


def configure(hub: HubConfig) -> DecoderConfig:
    given: dict[str, Any] = rope_of(hub) if hub.rope_scaling or hub.rope_parameters else dict(ROPE)
    rope = {name: value for name, value in given.items() if name not in (BETA, "max_position_embeddings")}
    window = None if hub.sliding_window is UNSET else hub.sliding_window
    made = neutral(hub, kv_heads=KV_HEADS, head_dim=HEAD_DIM, rope=rope, windows=windows_of(hub, window))
    original = rope.get("original_max_position_embeddings")
    if not given.get(BETA) or not isinstance(original, int):
        return made
    return msgspec.structs.replace(made, context=min(made.context, original))
