"""SmolLM3: a Llama in which every fourth layer does not know positions, and may have a window."""

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import READ, HubConfig, wrong_key
from msx_llm.models.members import IGNORED, NEUTRAL, ConfigMembers
from msx_llm.models.neutral import neutral, rope_of, windows_of

KV_HEADS, INTERVAL, THETA = 4, 4, 2000000.0
TURNS = {"no_rope_layer_interval", "no_rope_layers"}
KEYS = {"attention_bias", "layer_types", "mlp_bias", "sliding_window", "use_sliding_window"}
MEMBERS = ConfigMembers(READ | KEYS | TURNS, NEUTRAL, IGNORED | {"max_window_layers"})


def configure(hub: HubConfig) -> DecoderConfig:
    rope, turns = rope_of(hub, THETA), _turns(hub)
    if rope["rope_type"] in ("dynamic", "longrope"):
        raise wrong_key("rope_type", rope["rope_type"], "is not supported beside layers without positions")
    window = hub.sliding_window if hub.use_sliding_window and isinstance(hub.sliding_window, int) else None
    return neutral(
        hub,
        kv_heads=KV_HEADS,
        rope=rope,
        local_rope={},
        local_layers=tuple(not one for one in turns),
        windows=windows_of(hub, window, lambda layer: not turns[layer]),
        tied=hub.tie_word_embeddings is not False,
        qkv_bias=bool(hub.attention_bias),
        o_bias=bool(hub.attention_bias),
        mlp_bias=hub.mlp_bias,
    )


def _turns(hub: HubConfig) -> list[bool]:
    """Whether each layer knows positions. Raises HandlerLoadError."""
    interval, layers = hub.no_rope_layer_interval or INTERVAL, hub.num_hidden_layers
    given = hub.no_rope_layers or [(layer + 1) % interval for layer in range(layers)]
    if len(given) < layers:
        raise wrong_key("no_rope_layers", given, f"has {len(given)} entries for {layers} layers")
    return [bool(one) for one in given[:layers]]
