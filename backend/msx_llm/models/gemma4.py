"""Gemma 4, its text models: layers that see all have heads of another size, late layers read the keys and values of
earlier ones, each layer may have an input of its own, and experts beside its MLP."""

from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from msx_llm.models.config import DecoderConfig, LayerShape
from msx_llm.models.experts import ExpertsConfig, check_chosen
from msx_llm.models.gemma3 import HEAD_DIM, KV_HEADS, PATTERN, gemma
from msx_llm.models.hub import READ, HubConfig, wrong_key
from msx_llm.models.layer_keys import LAYER_KEYS, LayerOverrides, layer_overrides
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import typed_rope, windows_of

ROPES = {
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}
OF_EXPERTS = {"moe_intermediate_size", "num_experts"}
OTHERS = {"attention_bias", "hidden_activation", "layer_types", "query_pre_attn_scalar", "sliding_window"}
"""As in transformers, the scale of scores is 1 whatever `query_pre_attn_scalar` says."""
NAMES = (
    ("mlp.gate.weight", "router.proj.weight"),
    ("mlp.gate.", "router."),
    ("mlp.experts.", "experts."),
    ("mlp.dense_norm", "post_feedforward_layernorm_1"),
    ("mlp.before_norm", "pre_feedforward_layernorm_2"),
    ("mlp.after_norm", "post_feedforward_layernorm_2"),
)
MEMBERS = ConfigMembers(
    READ | LAYER_KEYS | OF_EXPERTS | OTHERS,
    {**NEUTRAL, "use_bidirectional_attention": (None, False, "vision")},
    IGNORED,
)
"""`vision`: pictures see what follows them, texts do not."""


@dataclass(frozen=True)
class Defaults:
    """Values of keys that are missing."""

    window: int
    layer_input: int


TEXT, UNIFIED = Defaults(512, 256), Defaults(1024, 0)


def configure(hub: HubConfig) -> DecoderConfig:
    return of_gemma(hub, TEXT)


def configure_unified(hub: HubConfig) -> DecoderConfig:
    return of_gemma(hub, UNIFIED)


def of_gemma(hub: HubConfig, defaults: Defaults) -> DecoderConfig:
    windows, given = _windows(hub, defaults), hub.hidden_size_per_layer_input
    return gemma(
        hub,
        _ropes(hub),
        windows,
        shapes=_shapes(hub, windows),
        value_norm=True,
        attention_scale=1.0,
        layer_factors=True,
        layer_inputs=defaults.layer_input if given is None else given,
        layer_vocabulary=hub.vocab_size_per_layer_input,
        logits_cap=hub.final_logit_softcapping or None,
        experts=_experts(hub) if hub.enable_moe_block else None,
    )


def _windows(hub: HubConfig, defaults: Defaults) -> tuple[int | None, ...]:
    """The last layer sees all, whatever the file says."""
    window = defaults.window if hub.sliding_window is UNSET else hub.sliding_window
    return (*windows_of(hub, window, lambda layer: (layer + 1) % PATTERN != 0)[:-1], None)


def _ropes(hub: HubConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    given = hub.rope_parameters or ROPES
    ropes = (given.get(kind) or default for kind, default in ROPES.items())
    whole, local = (typed_rope(rope) for rope in ropes)
    return whole, local


def _shapes(hub: HubConfig, windows: tuple[int | None, ...]) -> tuple[LayerShape, ...]:
    sources = _sources(hub, windows)
    return tuple(_shape(hub, layer, window, sources.get(layer)) for layer, window in enumerate(windows))


def _shape(hub: HubConfig, layer: int, window: int | None, source: int | None) -> LayerShape:
    size, heads = hub.head_dim or HEAD_DIM, hub.num_key_value_heads or KV_HEADS
    if hub.per_layer_config is not None:
        own = layer_overrides(hub.per_layer_config).get(layer, LayerOverrides())
        size, heads = own.head_dim or size, own.num_key_value_heads or heads
    elif window is None:
        size = hub.global_head_dim or size
        heads = (hub.num_global_key_value_heads or heads) if hub.attention_k_eq_v else heads
    if hub.num_attention_heads % heads:
        raise wrong_key("num_global_key_value_heads", heads, f"does not divide {hub.num_attention_heads} query heads")
    return LayerShape(
        head_dim=size,
        kv_heads=heads,
        intermediate_size=hub.intermediate_size * (1 + (hub.use_double_wide_mlp and source is not None)),
        values_of_keys=hub.attention_k_eq_v and window is None,
        source=source,
    )


def _sources(hub: HubConfig, windows: tuple[int | None, ...]) -> dict[int, int]:
    """The last layer of the same kind that has keys and values of its own, for each that has none."""
    own = len(windows) - hub.num_kv_shared_layers
    last = {window: layer for layer, window in enumerate(windows[: max(own, 0)])}
    if missing := set(windows) - last.keys():
        kind = "full_attention" if None in missing else "sliding_attention"
        raise wrong_key("num_kv_shared_layers", hub.num_kv_shared_layers, f"leaves no layer of {kind} of its own")
    return {layer: last[windows[layer]] for layer in range(own, len(windows))}


def _experts(hub: HubConfig) -> ExpertsConfig:
    count, chosen, inner = hub.num_experts or 0, hub.top_k_experts or 0, hub.moe_intermediate_size or 0
    if missing := next(
        (it for it in ("num_experts", "top_k_experts", "moe_intermediate_size") if not getattr(hub, it)), ""
    ):
        raise wrong_key(missing, getattr(hub, missing), "is not a number of 1 or more, which enable_moe_block needs")
    check_chosen(count, chosen)
    return ExpertsConfig(
        count=count,
        chosen=chosen,
        inner=inner,
        layers=(True,) * hub.num_hidden_layers,
        normed=True,
        beside=True,
        names=NAMES,
        activation="gelu_tanh",
    )
