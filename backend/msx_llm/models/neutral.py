"""Keys that all families read in the same way: sizes, angles and windows."""

from collections.abc import Callable
from typing import Any

from msx_llm.models.config import DecoderConfig
from msx_llm.models.hub import HubConfig, blocks_of_scales, wrong_key


def neutral(
    hub: HubConfig,
    *,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    rope: dict[str, Any] | None = None,
    **family: Any,
) -> DecoderConfig:
    """The configuration with what all families share; `kv_heads` and `head_dim` are a family's defaults,
    `rope` is what it made of the file's.

    Raises HandlerLoadError when heads do not fit each other.
    """
    kv = hub.num_key_value_heads or kv_heads or hub.num_attention_heads
    size = head_size(hub, head_dim)
    if hub.num_attention_heads % kv:
        raise wrong_key("num_key_value_heads", kv, f"does not divide num_attention_heads: {hub.num_attention_heads}")
    rope = rope or rope_of(hub)
    shared: dict[str, Any] = {"windows": (None,) * hub.num_hidden_layers, "tied": bool(hub.tie_word_embeddings)}
    return DecoderConfig(
        model_type=hub.model_type,
        vocab_size=hub.vocab_size,
        hidden_size=hub.hidden_size,
        intermediate_size=hub.intermediate_size,
        heads=hub.num_attention_heads,
        kv_heads=kv,
        head_dim=size,
        context=_positions(hub, rope),
        native=_native(hub, rope),
        norm_eps=hub.rms_norm_eps,
        rope=rope,
        causal=hub.is_causal is not False,
        dtype=hub.dtype or hub.torch_dtype or "float32",
        scaled_blocks=blocks_of_scales(hub),
        **(shared | family),
    )


def head_size(hub: HubConfig, default: int | None = None) -> int:
    """`default`: a family's. Raises HandlerLoadError."""
    size = hub.head_dim or default or _head_dim(hub)
    if size % 2:
        raise wrong_key("head_dim", size, "is odd; rotary positions need an even one")
    return size


def turning_of(hub: HubConfig, rope: dict[str, Any], head_dim: int | None = None, share: float = 1.0) -> int:
    """How many numbers of a head turn: `partial_rotary_factor` of them; `head_dim` and `share` are a family's defaults.
    Raises HandlerLoadError."""
    size = head_size(hub, head_dim)
    factor = hub.partial_rotary_factor or rope.get("partial_rotary_factor") or share
    turning = int(size * factor)
    if turning % 2 or (size - turning) % 2 or not 0 < turning <= size:
        raise wrong_key(
            "partial_rotary_factor", factor, f"lets {turning} of {size} numbers of a head turn; it must be even"
        )
    return turning


def windows_of(
    hub: HubConfig, window: int | None, has_window: Callable[[int], bool] = lambda layer: True
) -> tuple[int | None, ...]:
    """Each layer's window: by `layer_types`, else where the family says. Raises HandlerLoadError."""
    kinds = hub.layer_types
    if window == 0:
        raise wrong_key("sliding_window", 0, "is not a number of positions; give null for layers without a window")
    if kinds is None:
        return tuple(window if has_window(layer) else None for layer in range(hub.num_hidden_layers))
    if len(kinds) != hub.num_hidden_layers:
        raise wrong_key("layer_types", kinds, f"has {len(kinds)} entries for {hub.num_hidden_layers} layers")
    if odd := set(kinds) - {"full_attention", "sliding_attention"}:
        raise wrong_key("layer_types", sorted(odd)[0], "is unknown; known are full_attention and sliding_attention")
    if window is None and "sliding_attention" in kinds:
        raise wrong_key("layer_types", "sliding_attention", "needs a sliding_window, and this model has none")
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


def rope_of(hub: HubConfig, theta: float = 10000.0) -> dict[str, Any]:
    """Older files have `rope_theta` and `rope_scaling`, newer ones have both in `rope_parameters`. The older key
    wins. `theta`: a family's default."""
    key = "rope_scaling" if hub.rope_scaling else "rope_parameters"
    given = dict(hub.rope_scaling or hub.rope_parameters or {})
    if nested := [name for name, value in given.items() if isinstance(value, dict)]:
        raise wrong_key(f"{key}.{nested[0]}", given[nested[0]], "is not supported: all layers have the same angles")
    given = typed_rope(given)
    given["rope_theta"] = given.get("rope_theta") or hub.rope_theta or theta
    if hub.original_max_position_embeddings and given["rope_type"] in ("llama3", "longrope", "yarn"):
        given["original_max_position_embeddings"] = hub.original_max_position_embeddings
    return given


def typed_rope(given: dict[str, Any]) -> dict[str, Any]:
    """Older files call the type `type`."""
    others = {name: value for name, value in given.items() if name != "type"}
    return others | {"rope_type": given.get("rope_type") or given.get("type") or "default"}


def _positions(hub: HubConfig, rope: dict[str, Any]) -> int:
    """Number of positions of its context. With YaRN some files still state the length before stretching (Qwen 2.5 and
    3), with dynamic rope most do."""
    stated, factor = hub.max_position_embeddings, rope.get("factor")
    original = rope.get("original_max_position_embeddings")
    if rope["rope_type"] == "dynamic":
        original = original or stated
    elif rope["rope_type"] != "yarn":
        return stated
    if isinstance(original, int) and isinstance(factor, int | float):
        return max(stated, int(original * factor))
    return stated


def _native(hub: HubConfig, rope: dict[str, Any]) -> int:
    original = rope.get("original_max_position_embeddings")
    return original if rope["rope_type"] == "longrope" and isinstance(original, int) else hub.max_position_embeddings


def _head_dim(hub: HubConfig) -> int:
    hidden, heads = hub.hidden_size, hub.num_attention_heads
    if hidden % heads:
        raise wrong_key("num_attention_heads", heads, f"does not divide hidden_size: {hidden}")
    return hidden // heads
