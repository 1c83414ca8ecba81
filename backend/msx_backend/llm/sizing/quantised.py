"""What quantised weights leave out of a rank's memory."""

from __future__ import annotations

from collections.abc import Iterator

from msx_backend.llm.division import own_layers
from msx_backend.llm.models.config import DecoderConfig
from msx_backend.llm.models.quantised.format import LinearFormat
from msx_backend.llm.models.quantised.scheme import ROOT
from msx_backend.llm.models.weights import layer_shapes
from msx_backend.llm.sizing.parts import divisor, itemsize, rank_parameters
from msx_sdk.mindspore.parallel import Parallel


def weight_bytes(config: DecoderConfig, parallel: Parallel) -> int:
    """All weights of a rank."""
    return rank_parameters(config, parallel) * itemsize(config, parallel.target) - saved_bytes(config, parallel)


def saved_bytes(config: DecoderConfig, parallel: Parallel) -> int:
    """Of a rank's layers, beside weights of the data type of the computation."""
    layers = own_layers(config, parallel)
    return sum(saved for layer in layers for saved in _saved(config, parallel, layer))


def _saved(config: DecoderConfig, parallel: Parallel, layer: int) -> Iterator[int]:
    if config.quantised is None:
        return
    for name, shape in layer_shapes(config, layer):
        form = config.quantised.of(f"{ROOT}layers.{layer}.{name.removesuffix('.weight')}")
        if form is not None and name.endswith(".weight") and not _widened(config, name, parallel.target):
            outputs, inputs = shape
            saved = outputs * inputs * itemsize(config, parallel.target) - linear_bytes(form, outputs, inputs, parallel)
            yield saved // divisor(config, name, parallel.tp_size)


def _widened(config: DecoderConfig, name: str, target: str) -> bool:
    """The layer's weights become numbers when they are loaded."""
    return (config.latent is not None and name.startswith("self_attn.")) or (target != "CPU" and ".experts." in name)


def linear_bytes(form: LinearFormat, outputs: int, inputs: int, parallel: Parallel) -> int:
    """On all ranks. A CPU has float32 scales, and zero points of all codes of 4 bits; an NPU a byte for each code."""
    numbers = form.groups(inputs) * outputs
    if parallel.target == "CPU":
        return outputs * inputs * form.bits // 8 + numbers * (8 if form.zeros or form.bits == 4 else 4)
    return outputs * inputs + numbers * (4 if form.zeros else 2)
