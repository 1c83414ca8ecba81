"""Memory that quantised weights save on a rank."""

from collections.abc import Iterator

from msx_llm.division import own_layers
from msx_llm.models.config import DecoderConfig
from msx_llm.models.quantised.format import LinearFormat
from msx_llm.models.quantised.scheme import ROOT
from msx_llm.models.weights import layer_shapes
from msx_llm.sizing.parts import divisor, itemsize, rank_parameters
from msx_sdk.mindspore.parallel import Parallel


def weight_bytes(config: DecoderConfig, parallel: Parallel) -> int:
    """All weights of a rank."""
    return rank_parameters(config, parallel) * itemsize(config, parallel.target) - saved_bytes(config, parallel)


def saved_bytes(config: DecoderConfig, parallel: Parallel, experts: float | None = None) -> int:
    """Bytes that a rank's layers save against weights of the computation's data type; with so many experts of each
    layer that has some, else with all."""
    layers = own_layers(config, parallel)
    read = 1.0 if experts is None or config.experts is None else experts / config.experts.count
    saved = (it for layer in layers for it in _saved(config, parallel, layer))
    return int(sum(size * (read if ".experts." in name else 1) for name, size in saved))


def _saved(config: DecoderConfig, parallel: Parallel, layer: int) -> Iterator[tuple[str, int]]:
    if config.quantised is None:
        return
    for name, shape in layer_shapes(config, layer):
        form = config.quantised.of(f"{ROOT}layers.{layer}.{name.removesuffix('.weight')}")
        if form is not None and name.endswith(".weight") and not _widened(config, name, form, parallel.target):
            outputs, inputs = shape
            saved = outputs * inputs * itemsize(config, parallel.target) - linear_bytes(form, outputs, inputs, parallel)
            yield name, saved // divisor(config.of_layer(layer), name, parallel.tp_size)


def _widened(config: DecoderConfig, name: str, form: LinearFormat, target: str) -> bool:
    """The layer's weights become numbers when they are loaded."""
    if target != "CPU" and not form.grouped_for_npus:
        return True
    if name.startswith("self_attn."):
        return config.latent is not None
    return ".experts." in name and not form.by_output and (target != "CPU" or form.ordered)


def linear_bytes(form: LinearFormat, outputs: int, inputs: int, parallel: Parallel) -> int:
    """Bytes on all ranks. A CPU has float32 scales, and zero points of all codes of 4 bits; an NPU a byte for each
    code."""
    numbers = form.groups(inputs) * outputs
    if parallel.target == "CPU":
        return outputs * inputs * form.bits // 8 + numbers * (8 if form.zeros or form.bits == 4 else 4)
    return outputs * inputs + numbers * (4 if form.zeros else 2)
