"""Loads this rank's part of a model, and makes the runner that suits its device."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import mindspore as ms

from msx_core.mindspore.loading import parameter_size, without_data
from msx_llm.division import check_division, check_generates, own_layers
from msx_llm.flat_runner import FlatRunner
from msx_llm.kernels.ascend.factory import AscendKernels
from msx_llm.kernels.cpu.factory import CpuKernels
from msx_llm.limits import EngineLimits
from msx_llm.models.adapter_shape import AdapterShape
from msx_llm.models.config import DecoderConfig
from msx_llm.models.decoder import Decoder, DecoderParts
from msx_llm.models.kernels import Kernels
from msx_llm.models.weights import Checkpoint
from msx_llm.slot_runner import SlotRunner
from msx_sdk.mindspore.parallel import Parallel

Plan = Callable[[int], EngineLimits]
"""The limits that fit beside weights of this many bytes."""
Runner = SlotRunner | FlatRunner


def load_runner(
    folder: Path,
    config: DecoderConfig,
    plan: Plan,
    parallel: Parallel,
    kernels: Kernels | None = None,
    adapters: AdapterShape | None = None,
    chooses: bool = True,
) -> Runner:
    """Loads the weights first, because `plan` may ask the device how much memory they leave. `kernels`: others than
    those of the device. `adapters`: room for them. `chooses`: tokens are chosen on the device if it is an NPU. Raises
    HandlerLoadError if the model cannot be divided like this, or cannot generate."""
    check_generates(config)
    check_division(config, parallel)
    parts = DecoderParts(parallel, kernels or kernels_of(config, parallel.target), adapters)
    with without_data():
        decoder = Decoder(config, parts, own_layers(config, parallel))
    load = partial(_load, decoder, folder, config)
    load()
    decoder.set_train(False)
    limits = plan(parameter_size(decoder))
    if isinstance(parts.kernels, AscendKernels):
        return FlatRunner(decoder, config, limits, parts, chooses)
    return SlotRunner(decoder, config, limits, parts, load)


def _load(decoder: Decoder, folder: Path, config: DecoderConfig) -> None:
    """Raises HandlerLoadError."""
    with Checkpoint(folder, config) as checkpoint:
        decoder.load(checkpoint)


def kernels_of(config: DecoderConfig, target: str) -> Kernels:
    if target == "CPU":
        return CpuKernels()
    return AscendKernels(getattr(ms, config.dtype_on(target)))
