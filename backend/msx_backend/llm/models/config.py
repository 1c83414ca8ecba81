"""What `config.json` says of a model, and what the network is built from.

Keys, and what they mean where they are missing, are those of Hugging Face transformers. `members` says what becomes
of those that are not read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from msx_backend.llm.models.experts import EXPERT_KEYS, ExpertsConfig
from msx_backend.llm.models.latent import LATENT_KEYS, LatentConfig, LatentKeys
from msx_backend.llm.models.members import FILE
from msx_backend.llm.models.quantised.detect import METHODS
from msx_backend.llm.models.quantised.scheme import Quantisation
from msx_sdk._internal.validation import wrong_value
from msx_sdk.errors import HandlerLoadError

Positive = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(gt=0)]


class HubConfig(LatentKeys, frozen=True, kw_only=True):
    """The keys of `config.json` that at least one family reads."""

    model_type: str
    vocab_size: Positive
    hidden_size: Positive
    intermediate_size: Positive
    num_hidden_layers: Positive
    num_attention_heads: Positive
    num_key_value_heads: Positive | None = None
    head_dim: Positive | None = None
    max_position_embeddings: Positive
    original_max_position_embeddings: Positive | None = None
    hidden_act: str = "silu"
    hidden_activation: str | None = None
    rms_norm_eps: Amount = 1e-6
    rope_theta: Amount | None = None
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    rope_local_base_freq: Amount | None = None
    partial_rotary_factor: Amount | None = None
    query_pre_attn_scalar: Amount | None = None
    tie_word_embeddings: bool | None = None
    is_causal: bool | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    qkv_bias: bool = True
    sliding_window: Annotated[int, Meta(ge=0)] | UnsetType | None = UNSET
    use_sliding_window: bool = False
    max_window_layers: int = 28
    layer_types: list[str] | None = None
    sliding_window_pattern: Positive | None = None
    torch_dtype: str | None = None
    dtype: str | None = None
    quantization_config: dict[str, Any] | None = None


READ = frozenset(HubConfig.__struct_fields__) - EXPERT_KEYS - LATENT_KEYS - {
    "attention_bias", "hidden_activation", "layer_types", "max_window_layers", "mlp_bias", "partial_rotary_factor",
    "qkv_bias", "query_pre_attn_scalar", "rope_local_base_freq", "sliding_window", "sliding_window_pattern",
    "use_sliding_window",
}  # fmt: skip
"""Keys that every family reads; some families read the others."""


class LayerNorms(msgspec.Struct, frozen=True, kw_only=True):
    """The names that a layer's norms have in the files; None: there is no norm at this place."""

    before_attention: str | None = "input_layernorm"
    after_attention: str | None = None
    before_mlp: str | None = "post_attention_layernorm"
    after_mlp: str | None = None


class DecoderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A decoder of any family: transformer layers with rotary positions, RMS norms and a gated MLP."""

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
    """Positions that the model supports."""
    native: int
    """The length that the model was trained for: with dynamic rope and longrope, the angles of a text longer than this
    depend on its length."""
    norm_eps: float
    rope: dict[str, Any]
    """Hugging Face's `rope_parameters`."""
    windows: tuple[int | None, ...]
    """For each layer, how many positions a token sees, its own included; None: all."""
    tied: bool
    """The head uses the embedding's weight."""
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    """Queries and keys are normed for each head."""
    qk_norm_whole: bool = False
    """Queries and keys are normed over all heads at once."""
    sinks: bool = False
    """Each query head has a number beside its scores that takes a share of the softmax, and has no value."""
    norms: LayerNorms = LayerNorms()
    norm_offset: float = 0.0
    """Added to the weights of all norms when they are read."""
    rotary_dim: int | None = None
    """How many numbers of a head turn, from the first on; None: all."""
    rotary_pairs: bool = False
    """In the files, neighbours turn together; else numbers that are half of those that turn apart."""
    local_rope: dict[str, Any] | None = None
    """The rope of layers with a window, where theirs is another one."""
    attention_scale: float | None = None
    """The factor of the scores; None: one over the root of a head's size."""
    embedding_scale: float = 1.0
    activation: str = "silu"
    """Of the MLP's gate: silu or gelu_tanh."""
    fused: tuple[str, ...] = ()
    """Linear layers that are one tensor in the files: see `weights.FUSED`."""
    experts: ExpertsConfig | None = None
    """Of the layers that `sparse` names."""
    latent: LatentConfig | None = None
    """Keys and values are made of a short vector, and `head_dim` is what turns of a head."""
    causal: bool = True
    """True: a token sees earlier tokens only. False: it sees the whole text."""
    dtype: str = "float32"
    """The data type that the file states."""
    scaled_blocks: tuple[int, int] | None = None
    """Matrices of 8-bit floats in the files have a scale for each block of so many rows and columns."""
    quantised: Quantisation | None = None
    """Linear layers of the files are integers."""

    @property
    def layers(self) -> int:
        return len(self.windows)

    def sparse(self, layer: int) -> bool:
        """Whether the layer has experts in place of one MLP."""
        return self.experts is not None and self.experts.layers[layer]

    @property
    def group(self) -> int:
        """Query heads for each key-value head."""
        return self.heads // self.kv_heads

    def kv_heads_of(self, shards: int) -> int:
        """Key-value heads of one rank of a tensor-parallel group: with more ranks than heads, several ranks have the
        same head."""
        return max(self.kv_heads // shards, 1)

    @property
    def cache_size(self) -> int:
        """Numbers of a key-value head in the cache of keys."""
        return self.head_dim if self.latent is None else self.latent.width

    def cache_numbers(self, shards: int) -> int:
        """Of one token in one layer, on one rank."""
        return 2 * self.kv_heads_of(shards) * self.head_dim if self.latent is None else self.latent.width

    def kv_copies(self, shards: int) -> int:
        """How many ranks have the same key-value heads."""
        return max(shards // self.kv_heads, 1)

    def shares_weight(self, stages: int) -> bool:
        """Whether embedding and head are one weight in memory: on one stage, where neither is scaled."""
        return self.tied and stages == 1 and self.embedding_scale == 1

    @property
    def stretches(self) -> bool:
        """Whether angles depend on the length of the text above `native`."""
        return self.rope["rope_type"] in ("dynamic", "longrope") and self.context > self.native

    @property
    def ropes(self) -> tuple[dict[str, Any], ...]:
        return (self.rope,) if self.local_rope is None else (self.rope, self.local_rope)

    def rope_of(self, layer: int) -> int:
        """The place of the layer's rope in `ropes`."""
        return int(self.local_rope is not None and self.windows[layer] is not None)

    @property
    def turning(self) -> int:
        """How many numbers of a head turn."""
        return self.head_dim if self.rotary_dim is None else self.rotary_dim

    def dtype_on(self, target: str) -> str:
        """The data type of the computation: a CPU widens 16 bits to float32; an NPU's attention has no more than 16,
        and of a float32 model bfloat16 holds all magnitudes."""
        if target == "CPU":
            return "float32"
        return "float16" if self.dtype == "float16" else "bfloat16"

    def token_bytes(self, stages: int = 1, shards: int = 1, target: str = "CPU") -> int:
        """Bytes of one token's keys and values on the rank that holds most of them."""
        itemsize = 4 if self.dtype_on(target) == "float32" else 2
        return -(-self.layers // stages) * self.cache_numbers(shards) * itemsize


def read_raw(folder: Path) -> dict[str, Any]:
    """Reads all of `config.json`. Raises HandlerLoadError."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise HandlerLoadError(f"{FILE} cannot be read: {error.strerror}; a model folder needs one") from None
    except msgspec.DecodeError as error:
        raise HandlerLoadError(f"{FILE}: {wrong_value(error)[1]}") from None


def hub_config(raw: dict[str, Any]) -> HubConfig:
    """Raises HandlerLoadError, which names the key and its value, or what is missing."""
    try:
        config = msgspec.convert(raw, HubConfig)
    except msgspec.ValidationError as error:
        key, expected = wrong_value(error)
        raise HandlerLoadError(f"{FILE}{f', {key}' if key else ''}: {expected}") from None
    _check(config)
    return config


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
    size = hub.head_dim or head_dim or _head_dim(hub)
    if hub.num_attention_heads % kv:
        raise _wrong("num_key_value_heads", kv, f"does not divide num_attention_heads: {hub.num_attention_heads}")
    if size % 2:
        raise _wrong("head_dim", size, "is odd; rotary positions need an even one")
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
        scaled_blocks=_blocks_of_scales(hub),
        **(shared | family),
    )


def turning_of(hub: HubConfig, rope: dict[str, Any], head_dim: int | None = None, share: float = 1.0) -> int:
    """How many numbers of a head turn: `partial_rotary_factor` of them; `head_dim` and `share` are a family's defaults.
    Raises HandlerLoadError."""
    size = hub.head_dim or head_dim or _head_dim(hub)
    factor = hub.partial_rotary_factor or rope.get("partial_rotary_factor") or share
    turning = int(size * factor)
    if turning % 2 or (size - turning) % 2 or not 0 < turning <= size:
        raise _wrong(
            "partial_rotary_factor", factor, f"lets {turning} of {size} numbers of a head turn; it must be even"
        )
    return turning


def windows_of(
    hub: HubConfig, window: int | None, has_window: Callable[[int], bool] = lambda layer: True
) -> tuple[int | None, ...]:
    """Each layer's window: by `layer_types`, else where the family says. Raises HandlerLoadError."""
    kinds = hub.layer_types
    if window == 0:
        raise _wrong("sliding_window", 0, "is not a number of positions; give null for layers without a window")
    if kinds is None:
        return tuple(window if has_window(layer) else None for layer in range(hub.num_hidden_layers))
    if len(kinds) != hub.num_hidden_layers:
        raise _wrong("layer_types", kinds, f"has {len(kinds)} entries for {hub.num_hidden_layers} layers")
    if odd := set(kinds) - {"full_attention", "sliding_attention"}:
        raise _wrong("layer_types", sorted(odd)[0], "is unknown; known are full_attention and sliding_attention")
    if window is None and "sliding_attention" in kinds:
        raise _wrong("layer_types", "sliding_attention", "needs a sliding_window, and this model has none")
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


def rope_of(hub: HubConfig) -> dict[str, Any]:
    """Older files have `rope_theta` and `rope_scaling`, newer ones have both in `rope_parameters`. The older key
    wins."""
    key = "rope_scaling" if hub.rope_scaling else "rope_parameters"
    given = dict(hub.rope_scaling or hub.rope_parameters or {})
    if nested := [name for name, value in given.items() if isinstance(value, dict)]:
        raise _wrong(f"{key}.{nested[0]}", given[nested[0]], "is not supported: all layers have the same angles")
    given = typed_rope(given)
    given["rope_theta"] = given.get("rope_theta") or hub.rope_theta or 10000.0
    if hub.original_max_position_embeddings and given["rope_type"] in ("llama3", "longrope", "yarn"):
        given["original_max_position_embeddings"] = hub.original_max_position_embeddings
    return given


def typed_rope(given: dict[str, Any]) -> dict[str, Any]:
    """Older files call the type `type`."""
    others = {name: value for name, value in given.items() if name != "type"}
    return others | {"rope_type": given.get("rope_type") or given.get("type") or "default"}


def _positions(hub: HubConfig, rope: dict[str, Any]) -> int:
    """With YaRN some files still state the length before stretching (Qwen 2.5 and 3), with dynamic rope most do."""
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
    if hub.hidden_size % hub.num_attention_heads:
        raise _wrong("num_attention_heads", hub.num_attention_heads, f"does not divide hidden_size: {hub.hidden_size}")
    return hub.hidden_size // hub.num_attention_heads


def _check(hub: HubConfig) -> None:
    if hub.hidden_act not in ("silu", "swish"):
        raise _wrong("hidden_act", hub.hidden_act, "is not supported; silu is")
    _blocks_of_scales(hub)


def _blocks_of_scales(hub: HubConfig) -> tuple[int, int] | None:
    """Rows and columns that have one scale, of a file with 8-bit floats. Raises HandlerLoadError."""
    given = hub.quantization_config
    if given is None:
        return None
    method, blocks = given.get("quant_method", "unnamed"), given.get("weight_block_size")
    if (hub.model_type, method) == ("gpt_oss", "mxfp4") or method in METHODS:
        return None
    if method != "fp8" or given.get("fmt", "e4m3") != "e4m3":
        raise _wrong("quantization_config", method, "is not supported; take the checkpoint in bfloat16")
    if not isinstance(blocks, list) or len(blocks) != 2 or not all(isinstance(it, int) and it > 0 for it in blocks):
        raise _wrong("quantization_config.weight_block_size", blocks, "is not a number of rows and one of columns")
    return blocks[0], blocks[1]


def _wrong(key: str, value: object, why: str) -> HandlerLoadError:
    return HandlerLoadError(f"{FILE}, {key}: {value} {why}")
