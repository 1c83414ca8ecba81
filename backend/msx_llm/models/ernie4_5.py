"""Ernie 4.5, dense: neighbouring numbers of a head turn together; one key says whether linear layers have biases."""

from typing import Any

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, rope_of

KV_HEADS, HEAD_DIM, THETA = 2, 128, 500000.0
MEMBERS = ConfigMembers(READ | {"use_bias"}, NEUTRAL, IGNORED | {"attention_bias", "mlp_bias"})


def configure(hub: HubConfig) -> DecoderConfig:
    return of_ernie(hub, kv_heads=KV_HEADS, head_dim=HEAD_DIM)


def of_ernie(hub: HubConfig, **family: Any) -> DecoderConfig:
    return neutral(
        hub,
        rope=rope_of(hub, THETA),
        rotary_pairs=True,
        tied=hub.tie_word_embeddings is not False,
        qkv_bias=hub.use_bias,
        o_bias=hub.use_bias,
        mlp_bias=hub.use_bias,
        **family,
    )
