"""How a model is divided over ranks, and which models cannot be, or cannot be served at all."""

from math import prod

import msgspec

from msx_core.mindspore.balance import balance
from msx_llm.models.config import DecoderConfig
from msx_llm.models.weights import counted_shapes
from msx_llm.quantised_division import check_groups
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel


def own_layers(config: DecoderConfig, parallel: Parallel) -> range:
    """The layers of this rank's stage; the largest stage is as small as possible. Raises HandlerLoadError."""
    vocabulary = config.vocab_size * config.hidden_size
    tensors = (counted_shapes(config, layer) for layer in range(config.layers))
    sizes = [sum(prod(shape) * count for _, shape, count in layer) for layer in tensors]
    sizes[0], sizes[-1] = sizes[0] + vocabulary, sizes[-1] + vocabulary
    try:
        return balance(sizes, parallel.stages)[parallel.stage]
    except ValueError as error:
        raise HandlerLoadError(f"{error}; parallel: pipelineStages must be less") from None


def check_generates(config: DecoderConfig) -> None:
    if not config.causal:
        raise HandlerLoadError(
            "config.json, is_causal: false: each token of this model sees what follows it, so that it cannot generate; "
            "serve it with --handler embedding"
        )


def with_whole_experts(config: DecoderConfig, wanted: bool) -> DecoderConfig:
    """The same with whole experts on each rank, if `wanted`. Raises HandlerLoadError."""
    if not wanted:
        return config
    if config.experts is None or config.experts.clamp is not None:
        raise HandlerLoadError(
            f"parallel.expertParallel: config.json, model_type: {config.model_type} has no experts that ranks can have "
            "whole; leave the key out"
        )
    return msgspec.structs.replace(config, experts=msgspec.structs.replace(config.experts, whole=True))


def check_division(config: DecoderConfig, parallel: Parallel) -> None:
    """Check that the model can be divided. With fewer key-value heads than ranks, neighbouring ranks have the same
    head."""
    ranks = parallel.tp_size
    if config.qk_norm_whole and ranks > 1:
        raise HandlerLoadError(
            f"config.json, model_type: {config.model_type} norms its queries and keys over all heads at once, which "
            f"cannot be divided over tensorParallel: {ranks} ranks; use pipelineStages"
        )
    if parallel.stages > 1 and (config.layer_inputs or any(shape.source is not None for shape in config.shapes)):
        raise HandlerLoadError(
            f"config.json, num_kv_shared_layers and hidden_size_per_layer_input: later layers of {config.model_type} "
            f"read what earlier ones have, which cannot be divided over pipelineStages: {parallel.stages}; use "
            "tensorParallel"
        )
    for own in config.variants:
        _check_sizes(own, ranks)
    check_groups(config, ranks)


def _check_sizes(config: DecoderConfig, ranks: int) -> None:
    """Raises HandlerLoadError for the first size that the ranks do not divide."""
    sizes = {"num_attention_heads": config.heads, "intermediate_size": config.intermediate_size}
    if config.delta is not None:
        sizes["linear_num_key_heads"] = config.delta.key_heads
    if config.experts is not None:
        sizes |= {"num_experts": config.experts.count} if config.experts.whole else {}
        sizes |= {} if config.experts.whole else {"moe_intermediate_size": config.experts.inner}
        sizes["shared_expert_intermediate_size"] = config.experts.shared
    if config.kv_heads > ranks or ranks % config.kv_heads:
        sizes = {"num_key_value_heads": config.kv_heads} | sizes
    for key, size in sizes.items():
        if size % ranks:
            raise HandlerLoadError(
                f"config.json, {key}: {size} cannot be divided evenly over tensorParallel: {ranks} ranks; "
                "choose a divisor"
            )


def with_drafts(config: DecoderConfig, stages: int) -> DecoderConfig:
    """The same with room for states behind drafted tokens, of steps that are on their way through so many stages."""
    if config.delta is None:
        return config
    return msgspec.structs.replace(config, delta=msgspec.structs.replace(config.delta, drafts=stages))


def check_forgets(named: str, config: DecoderConfig) -> None:
    """Check that a small model can take back all tokens that it has drafted. Raises HandlerLoadError, in which it is
    `named` so."""
    if config.delta is not None:
        raise HandlerLoadError(
            f"{named} is a {config.model_type}, whose states do not forget draft tokens that were wrong: take another "
            "model to write drafts, or speculative: {method: ngram}"
        )


def check_same_tokens(named: str, draft: DecoderConfig, of: DecoderConfig) -> None:
    """Raises HandlerLoadError, in which the small model is `named` so."""
    if draft.vocab_size != of.vocab_size:
        raise HandlerLoadError(
            f"{named} has {draft.vocab_size} tokens and the model {of.vocab_size}: both must have the same tokenizer"
        )
