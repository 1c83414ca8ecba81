"""Configuration of a decoder's network."""

from collections.abc import Sequence
from typing import Any

import msgspec

from msx_llm.models.delta import DeltaConfig
from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.latent import LatentConfig
from msx_llm.models.quantised.scheme import Quantisation

MULTIPLE = 16
"""An NPU's attention takes heads whose size is a multiple of this."""


def with_sink(head_size: int) -> int:
    """Numbers of a head in an NPU's cache that has one more, which meets the sinks of queries."""
    return (head_size // MULTIPLE + 1) * MULTIPLE


class LayerNorms(msgspec.Struct, frozen=True, kw_only=True):
    """The names that a layer's norms have in the files; None: there is no norm at this place."""

    before_attention: str | None = "input_layernorm"
    after_attention: str | None = None
    before_mlp: str | None = "post_attention_layernorm"
    after_mlp: str | None = None
    query: str = "self_attn.q_norm"
    key: str = "self_attn.k_norm"


class LayerShape(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a `DecoderConfig`, as one layer has them."""

    head_dim: int
    kv_heads: int
    intermediate_size: int
    values_of_keys: bool = False
    source: int | None = None


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
    """Number of positions that a token sees in each layer, its own included; None: all."""
    tied: bool
    """The head uses the embedding's weight."""
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    """Queries and keys are normed for each head."""
    qk_norm_whole: bool = False
    """Queries and keys are normed over all heads at once."""
    qk_norm_last: bool = False
    """They are normed behind their turn, not before it."""
    sinks: bool = False
    """Each query head has a number beside its scores that takes a share of the softmax, and has no value."""
    value_norm: bool = False
    """Values are normed for each head, without weights."""
    values_of_keys: bool = False
    """One linear layer makes keys and values, which differ by norms and turns."""
    source: int | None = None
    """The layer whose keys and values this one reads; None: its own."""
    shapes: tuple[LayerShape, ...] = ()
    """Shapes of the layers, where they differ: see `of_layer`."""
    layer_factors: bool = False
    """The state behind each layer is multiplied by a number of the layer."""
    layer_inputs: int = 0
    """The width of what each layer gets of a token by an embedding of its own; 0: nothing."""
    layer_vocabulary: int = 0
    """Tokens of that embedding."""
    norms: LayerNorms = LayerNorms()
    norm_offset: float = 0.0
    """Added to the weights of all norms when they are read."""
    rotary_dim: int | None = None
    """How many numbers of a head turn, from the first on; None: all."""
    rotary_pairs: bool = False
    """Whether neighbours turn together, in the files; else numbers that are half of those that turn apart."""
    local_rope: dict[str, Any] | None = None
    """The rope of layers with a window, where theirs is another one; an empty one does not turn them."""
    local_layers: tuple[bool, ...] | None = None
    """Whether each layer has `local_rope`; None: those with a window have it."""
    attention_scale: float | None = None
    """The factor of the scores; None: one over the root of a head's size."""
    embedding_scale: float = 1.0
    logits_factor: float = 1.0
    logits_cap: float | None = None
    """Logits are bent so that they stay between this and its negative."""
    activation: str = "silu"
    """The activation of the MLP's gate: silu or gelu_tanh."""
    fused: tuple[str, ...] = ()
    """Linear layers that are one tensor in the files: see `weights.FUSED`."""
    experts: ExpertsConfig | None = None
    """Experts of the layers that `sparse` names."""
    latent: LatentConfig | None = None
    """Keys and values are made of a short vector, and `head_dim` is what turns of a head."""
    delta: DeltaConfig | None = None
    """Some layers have gated delta nets in place of attention, and a state for each text."""
    gated: bool = False
    """The result of attention is multiplied with the sigmoids of a gate, which lies beside the queries in the files."""
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

    def attends(self, layer: int) -> bool:
        """Whether the layer has attention, and keys and values of each token."""
        return self.delta is None or not self.delta.layers[layer]

    def of_layer(self, layer: int) -> "DecoderConfig":
        """The decoder with the shape of this layer."""
        if not self.shapes:
            return self
        return msgspec.structs.replace(self, shapes=(), **msgspec.structs.asdict(self.shapes[layer]))

    @property
    def variants(self) -> tuple["DecoderConfig", ...]:
        """The decoder with each shape that its layers have."""
        firsts = {shape: layer for layer, shape in reversed([*enumerate(self.shapes)])}
        return tuple(self.of_layer(layer) for layer in firsts.values()) or (self,)

    def of_rope(self, place: int) -> "DecoderConfig":
        """The decoder with this one of its `ropes`, and the shape of layers that have it."""
        layers = (layer for layer in range(self.layers) if self.rope_of(layer) == place)
        own = self.of_layer(next(layers, 0))
        return msgspec.structs.replace(own, rope=self.ropes[place])

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

    def cache_size(self, target: str = "CPU") -> int:
        """Numbers of a key-value head in the cache of keys. An NPU's has more where attention has sinks: one that meets
        them, and zeros up to the next multiple that its kernels take."""
        if self.latent is not None:
            return self.latent.width
        return with_sink(self.head_dim) if self.sinks and target != "CPU" else self.head_dim

    def cache_numbers(self, shards: int, target: str = "CPU") -> int:
        """Numbers that the cache holds for one token in one layer, on one rank."""
        return self.cache_size(target) * (2 * self.kv_heads_of(shards) if self.latent is None else 1)

    def layer_cache(self, layer: int, shards: int, target: str = "CPU") -> int:
        """`cache_numbers` of this layer: none of one that reads another's keys and values, or has a state."""
        own = self.of_layer(layer)
        return 0 if own.source is not None or not self.attends(layer) else own.cache_numbers(shards, target)

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
        local = self.windows[layer] is not None if self.local_layers is None else self.local_layers[layer]
        return int(self.local_rope is not None and local)

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
        sizes = [self.layer_cache(layer, shards, target) for layer in range(self.layers)]
        return self._most_of_a_stage(stages, sizes) * self.itemsize(target)

    def text_bytes(self, stages: int = 1, shards: int = 1, target: str = "CPU") -> int:
        """Bytes of one text's states on the rank that holds most of them, whatever its length."""
        if self.delta is None:
            return 0
        nets = [not self.attends(layer) for layer in range(self.layers)]
        return self._most_of_a_stage(stages, nets) * self.delta.divided(shards).kept * 4

    def itemsize(self, target: str) -> int:
        return 4 if self.dtype_on(target) == "float32" else 2

    def _most_of_a_stage(self, stages: int, sizes: Sequence[int]) -> int:
        """The largest sum of as many neighbouring layers as a stage has."""
        count = -(-self.layers // stages)
        return max(sum(sizes[first : first + count]) for first in range(self.layers - count + 1))
