"""The time of a step: the longer of what its bytes and its operations take at the device's peaks."""

from msx_core.sizing import StepTime
from msx_llm.division import own_layers
from msx_llm.kernels.device import DevicePeaks
from msx_llm.models.config import DecoderConfig
from msx_llm.sizing.parts import (
    itemsize,
    layers_parameters,
    text_bytes,
    token_bytes,
    touched_experts,
    vocabulary_parameters,
)
from msx_llm.sizing.quantised import saved_bytes
from msx_sdk.mindspore.parallel import Parallel


def decode_time(config: DecoderConfig, parallel: Parallel, peaks: DevicePeaks, texts: int, context: int) -> StepTime:
    """A token for each of `texts` that have `context` positions, on one rank."""
    head = _head_numbers(config, parallel)
    touched = touched_experts(config, texts)
    read = layers_parameters(config, parallel, touched) + head
    cache = texts * context * token_bytes(config, parallel)  # where layers have windows, too: masks hide the rest
    cache += texts * text_bytes(config, parallel)  # one of both states, read and written
    flops = 2 * (_token_numbers(config, parallel) + head) * texts + texts * context * _pair_flops(config, parallel)
    bytes = read * itemsize(config, parallel.target) - saved_bytes(config, parallel, touched) + cache
    return _time(peaks, bytes, flops, _exchange(config, parallel, peaks, texts))


def prefill_time(config: DecoderConfig, parallel: Parallel, peaks: DevicePeaks, context: int, chunk: int) -> StepTime:
    """A prompt of `context` tokens in chunks, each of which reads the weights and what is before it; only the last
    token needs logits."""
    chunks, head = -(-context // chunk), _head_numbers(config, parallel)
    touched = touched_experts(config, chunk)
    saved = chunks * saved_bytes(config, parallel, touched)
    read = (chunks * layers_parameters(config, parallel, touched) + head) * itemsize(config, parallel.target) - saved
    read += chunks * context * token_bytes(config, parallel) // 2  # on average half of them are before a chunk
    pairs = context * context // 2
    flops = 2 * (_token_numbers(config, parallel) * context + head) + pairs * _pair_flops(config, parallel)
    return _time(peaks, read, flops, _exchange(config, parallel, peaks, context))


def _time(peaks: DevicePeaks, bytes: float, flops: float, exchange: float | None) -> StepTime:
    assert peaks.bandwidth is not None
    assert peaks.flops is not None
    return StepTime(memory=bytes / peaks.bandwidth, compute=flops / peaks.flops, exchange=exchange)


def _pair_flops(config: DecoderConfig, parallel: Parallel) -> int:
    """Operations for one token and one position in a rank's layers: a multiplication and an addition each for score and
    mix."""
    heads = config.heads // parallel.tp_size
    layers = [layer for layer in own_layers(config, parallel) if config.attends(layer)]
    if config.latent is not None:
        return 2 * heads * (config.latent.width + config.latent.rank) * len(layers)
    return sum(4 * heads * config.of_layer(layer).head_dim for layer in layers)


def _token_numbers(config: DecoderConfig, parallel: Parallel) -> int:
    """Numbers that one token is multiplied with in the rank's layers."""
    return layers_parameters(config, parallel, config.experts.chosen if config.experts else None)


def _head_numbers(config: DecoderConfig, parallel: Parallel) -> int:
    return vocabulary_parameters(config, parallel.tp_size) if parallel.last_stage else 0


def _exchange(config: DecoderConfig, parallel: Parallel, peaks: DevicePeaks, tokens: int) -> float | None:
    """Two all-reduces of the states in each layer, in a ring; without what each one takes to start."""
    ranks = parallel.tp_size
    if ranks == 1:
        return 0.0
    if peaks.link is None:
        return None
    states = tokens * config.hidden_size * itemsize(config, parallel.target)
    return 2 * len(own_layers(config, parallel)) * states * 2 * (ranks - 1) / ranks / peaks.link
