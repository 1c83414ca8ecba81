"""Gemma 3, its text models: most layers have a window and a rope of their own, and norms add 1 to their weights."""

from typing import Any

from msgspec import UNSET

from msx_llm.models.config import DecoderConfig, LayerNorms
from msx_llm.models.hub import READ, HubConfig
from msx_llm.models.members import FILE, IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, typed_rope, windows_of
from msx_sdk.errors import HandlerLoadError

WINDOW, PATTERN, KV_HEADS, HEAD_DIM, SCALAR = 4096, 6, 4, 256, 256.0
GLOBAL, LOCAL = 1e6, 1e4
ACTIVATION = "gelu_pytorch_tanh"
NORMS = LayerNorms(
    after_attention="post_attention_layernorm",
    before_mlp="pre_feedforward_layernorm",
    after_mlp="post_feedforward_layernorm",
)
MEMBERS = ConfigMembers(
    READ
    | {
        "attention_bias", "hidden_activation", "layer_types", "query_pre_attn_scalar", "rope_local_base_freq",
        "sliding_window", "sliding_window_pattern",
    },
    NEUTRAL,
    (IGNORED | {"mlp_bias", "cache_implementation"}),
)  # fmt: skip


def configure(hub: HubConfig) -> DecoderConfig:
    window = WINDOW if hub.sliding_window is UNSET else hub.sliding_window
    pattern = hub.sliding_window_pattern or PATTERN
    return gemma(
        hub,
        ropes(hub),
        windows_of(hub, window, lambda layer: (layer + 1) % pattern != 0),
        norm_offset=1.0,
        attention_scale=(hub.query_pre_attn_scalar or SCALAR) ** -0.5,
    )


def gemma(
    hub: HubConfig, ropes: tuple[dict[str, Any], dict[str, Any]], windows: tuple[int | None, ...], **own: Any
) -> DecoderConfig:
    """The configuration with what all generations since Gemma 3 share: `ropes` of layers that see all and of those
    with a window, and what is a generation's `own`. Raises HandlerLoadError."""
    _check_activation(hub)
    whole, local = ropes
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        rope=whole,
        local_rope=local,
        windows=windows,
        tied=hub.tie_word_embeddings is not False,
        qkv_bias=bool(hub.attention_bias),
        o_bias=bool(hub.attention_bias),
        qk_norm=True,
        norms=NORMS,
        embedding_scale=hub.hidden_size**0.5,
        activation="gelu_tanh",
        **own,
    )


def _check_activation(hub: HubConfig) -> None:
    activation = hub.hidden_activation or ACTIVATION
    if activation != ACTIVATION:
        raise HandlerLoadError(f"{FILE}, hidden_activation: {activation} is not supported; {ACTIVATION} is")


def ropes(hub: HubConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ropes of layers that see all, and of those with a window. Newer files have both in `rope_parameters`."""
    given = hub.rope_parameters or {}
    whole = {"rope_theta": hub.rope_theta or GLOBAL} | (given.get("full_attention") or {}) | (hub.rope_scaling or {})
    local = {"rope_theta": hub.rope_local_base_freq or LOCAL} | (given.get("sliding_attention") or {})
    return typed_rope(whole), typed_rope(local)
