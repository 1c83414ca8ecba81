"""OLMo 2: norms after attention and MLP, none before them; queries and keys are normed over all heads."""

from msx_llm.models.config import DecoderConfig, LayerNorms
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral

NORMS = LayerNorms(
    before_attention=None,
    after_attention="post_attention_layernorm",
    before_mlp=None,
    after_mlp="post_feedforward_layernorm",
)
MEMBERS = ConfigMembers(read=READ | {"attention_bias"}, neutral=NEUTRAL, ignored=IGNORED | {"mlp_bias"})


def configure(hub: HubConfig) -> DecoderConfig:
    bias = bool(hub.attention_bias)
    return neutral(hub, norms=NORMS, qk_norm_whole=True, qkv_bias=bias, o_bias=bias)
