"""Keys of `config.json` about layers with gated delta nets."""

from msx_llm.models.delta import DeltaConfig
from msx_llm.models.hub import HubConfig, wrong_key

KINDS = ("full_attention", "linear_attention")


def delta_of(hub: HubConfig, *, by_heads: bool) -> DeltaConfig:
    """Nets by `layer_types`, or every `full_attention_interval`-th one has attention. Raises HandlerLoadError."""
    layers = hub.num_hidden_layers
    kinds = hub.layer_types or [KINDS[(n + 1) % hub.full_attention_interval != 0] for n in range(layers)]
    if len(kinds) != layers:
        raise wrong_key("layer_types", kinds, f"has {len(kinds)} entries for {layers} layers")
    if odd := sorted(set(kinds) - set(KINDS)):
        raise wrong_key("layer_types", odd[0], f"is unknown; known are {' and '.join(KINDS)}")
    if hub.linear_num_value_heads % hub.linear_num_key_heads:
        values = hub.linear_num_value_heads
        raise wrong_key(
            "linear_num_key_heads", hub.linear_num_key_heads, f"does not divide linear_num_value_heads: {values}"
        )
    return DeltaConfig(
        key_heads=hub.linear_num_key_heads,
        value_heads=hub.linear_num_value_heads,
        key=hub.linear_key_head_dim,
        value=hub.linear_value_head_dim,
        kernel=hub.linear_conv_kernel_dim,
        layers=tuple(kind != KINDS[0] for kind in kinds),
        by_heads=by_heads,
    )
