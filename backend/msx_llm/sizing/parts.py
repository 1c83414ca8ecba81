"""The part of a model that one rank holds: its parameters, and the keys and values beside them."""

from math import prod

from msx_llm.division import own_layers
from msx_llm.kernels.devices import engine_device
from msx_llm.models.adapter_shape import AdapterShape
from msx_llm.models.config import DecoderConfig
from msx_llm.models.layer_shapes import EMBEDDING, input_shapes
from msx_llm.models.weights import counted_shapes, layer_shapes
from msx_sdk.mindspore.parallel import Parallel

_BY_OUTPUTS = (
    "q_proj", "q_b_proj", "kv_b_proj", "gate_proj", "up_proj", "in_proj_", "linear_attn.conv1d", "linear_attn.A_log",
    "linear_attn.dt_bias",
)  # fmt: skip
_SHARED = ("k_proj", "v_proj")
"""Layers divided by outputs; with more ranks than heads several ranks have the same part."""
_BY_INPUTS = ("o_proj.weight", "out_proj.weight", "down_proj.weight", "experts.down_proj", "sinks")


def itemsize(config: DecoderConfig, target: str) -> int:
    return 4 if config.dtype_on(target) == "float32" else 2


def layer_parameters(config: DecoderConfig, shards: int, layer: int) -> int:
    """Numbers of one layer on one rank, of all its experts."""
    own = config.of_layer(layer)
    plain = own.head_dim if own.value_norm and own.source is None else 0  # a norm that no file has
    tensors = counted_shapes(config, layer)
    return plain + sum(prod(shape) // divisor(own, name, shards) * count for name, shape, count in tensors)


def layers_parameters(config: DecoderConfig, parallel: Parallel, experts: float | None = None) -> int:
    """Numbers of all layers of a rank; with so many experts of each layer that has some, else with all."""
    layers = own_layers(config, parallel)
    count = sum(layer_parameters(config, parallel.tp_size, layer) for layer in layers)
    if experts is None or config.experts is None:
        return count
    one = 3 * config.hidden_size * config.experts.inner // parallel.tp_size
    left_out = sum(config.sparse(layer) for layer in layers) * (config.experts.count - experts)
    return count - int(one * left_out)


def touched_experts(config: DecoderConfig, tokens: int) -> float:
    """How many of a layer's experts a step of so many tokens reads, if each token chooses at random."""
    if config.experts is None:
        return 0
    count, chosen = config.experts.count, config.experts.chosen
    return count * (1 - (1 - chosen / count) ** tokens)


def divisor(config: DecoderConfig, name: str, shards: int) -> int:
    if any(part in name for part in _SHARED):
        return min(shards, config.kv_heads)
    return shards if any(part in name for part in _BY_OUTPUTS) or name.endswith(_BY_INPUTS) else 1


def model_parameters(config: DecoderConfig) -> int:
    """Numbers of the whole model, whatever its files have them in; a tied head has none of its own."""
    layers = sum(layer_parameters(config, 1, layer) for layer in range(config.layers))
    return (
        layers + input_parameters(config, 1) + (2 - config.tied) * vocabulary_parameters(config, 1) + config.hidden_size
    )


def vocabulary_parameters(config: DecoderConfig, shards: int) -> int:
    """Numbers of the embedding, or of the head, on one rank."""
    return -(-config.vocab_size // shards) * config.hidden_size


def input_parameters(config: DecoderConfig, shards: int) -> int:
    """Numbers of what makes the layers' own inputs, on one rank: the embedding is divided."""
    return sum(prod(shape) // (shards if name.startswith(EMBEDDING) else 1) for name, shape in input_shapes(config))


def rank_parameters(config: DecoderConfig, parallel: Parallel) -> int:
    """Numbers of the rank's part. A tied head has numbers of its own only where it cannot share them."""
    count = layers_parameters(config, parallel) + input_parameters(config, parallel.tp_size)
    if parallel.first_stage and not config.shares_weight(parallel.stages):
        count += vocabulary_parameters(config, parallel.tp_size)
    if parallel.last_stage:
        count += vocabulary_parameters(config, parallel.tp_size) + config.hidden_size
    return count


def adapter_bytes(config: DecoderConfig, parallel: Parallel, shape: AdapterShape) -> int:
    """A and B of all places, of the rank's linear layers that may have adapters."""
    sizes = (_adapter_numbers(config, parallel, layer, shape) for layer in own_layers(config, parallel))
    return sum(sizes) * itemsize(config, parallel.target)


def _adapter_numbers(config: DecoderConfig, parallel: Parallel, layer: int, shape: AdapterShape) -> int:
    """A is divided with a layer's inputs, B with its outputs."""
    count = 0
    for name, size in layer_shapes(config, layer):
        if name.removesuffix(".weight").rpartition(".")[2] in shape.targets and len(size) == 2:
            (outputs, inputs), parts = size, divisor(config.of_layer(layer), name, parallel.tp_size)
            by_inputs = name.endswith(_BY_INPUTS)
            count += inputs // parts + outputs if by_inputs else inputs + outputs // parts
    return count * shape.width


def token_bytes(config: DecoderConfig, parallel: Parallel) -> int:
    """Keys and values of one token in the rank's layers."""
    target = parallel.target
    layers = own_layers(config, parallel)
    return sum(config.layer_cache(layer, parallel.tp_size, target) for layer in layers) * itemsize(config, target)


def text_bytes(config: DecoderConfig, parallel: Parallel) -> int:
    """States of one slot in the rank's layers."""
    if config.delta is None:
        return 0
    nets = sum(not config.attends(layer) for layer in own_layers(config, parallel))
    return nets * config.delta.divided(parallel.tp_size).kept * itemsize(config, parallel.target)


def cache_bytes(config: DecoderConfig, parallel: Parallel, texts: int, context: int) -> int:
    """The cache of whole texts, with two states more, which are those of a slot: of no tokens, and of padding."""
    keys = engine_device(parallel.target).cache_tokens(config, texts, context) * token_bytes(config, parallel)
    return keys + (texts + 1) * text_bytes(config, parallel)


def activation_bytes(config: DecoderConfig, parallel: Parallel, texts: int, context: int, chunk: int) -> int:
    """An estimate of the largest step's: the states of one layer, and on the last stage the logits, of a prompt all of
    them where they are wanted."""
    heads = config.heads // parallel.tp_size
    widths = max(_layer_width(own, parallel) for own in config.variants)
    step = max(chunk, texts) * widths * itemsize(config, parallel.target)
    step += engine_device(parallel.target).scores_bytes(config, heads, chunk, texts, context)
    return step + (max(2 * texts, chunk) * config.vocab_size * 4 if parallel.last_stage else 0)


def _layer_width(config: DecoderConfig, parallel: Parallel) -> int:
    heads = config.heads // parallel.tp_size + 2 * config.kv_heads_of(parallel.tp_size)
    width = 4 * config.hidden_size + config.layers * config.layer_inputs + _inner_width(config, parallel)
    return width + 2 * heads * config.cache_size(parallel.target)


def _inner_width(config: DecoderConfig, parallel: Parallel) -> int:
    """Width of a token between the products of an MLP, or of its experts."""
    inner, experts = config.intermediate_size, config.experts
    if experts is not None:
        rows = experts.chosen * (2 * experts.inner + 2 * config.hidden_size * parallel.tp_size)
        inner = max(inner, experts.shared) + rows // 2
    return 2 * inner // parallel.tp_size


def graph_bytes(config: DecoderConfig, parallel: Parallel) -> int:
    """Bytes that graphs keep beside weights."""
    most = engine_device(parallel.target).layer_graphs(config, parallel)
    size = itemsize(config, parallel.target)
    layers = own_layers(config, parallel)
    return sum(min(layer_parameters(config, parallel.tp_size, layer) * size, most) for layer in layers)
