"""Granite 3 and 4, dense: a Llama with factors for the embedding, the scores, what a sublayer adds, and the logits.

The states here are those of transformers divided by `residual_multiplier`: a sublayer adds what it made as it is, since
norms do not see the factor, beside their epsilon. So no weight is changed, and quantised ones are read as they are.
"""

import msgspec

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral

KEYS = {"attention_multiplier", "embedding_multiplier", "logits_scaling", "residual_multiplier"}
MEMBERS = ConfigMembers(READ | KEYS | {"attention_bias", "mlp_bias"}, NEUTRAL, IGNORED)


def configure(hub: HubConfig) -> DecoderConfig:
    bias, part = bool(hub.attention_bias), hub.residual_multiplier
    made = neutral(
        hub,
        qkv_bias=bias,
        o_bias=bias,
        mlp_bias=hub.mlp_bias,
        attention_scale=hub.attention_multiplier or 1.0,
        embedding_scale=hub.embedding_multiplier / part,
        logits_factor=1 / hub.logits_scaling,
    )
    return msgspec.structs.replace(made, norm_eps=made.norm_eps / part**2)
