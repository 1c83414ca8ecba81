"""Loads this rank's part of a model, and makes the runner that suits its device."""

from functools import partial
from pathlib import Path

from msx_core.mindspore.loading import parameter_size, without_data
from msx_llm.division import check_division, check_generates, own_layers
from msx_llm.kernels.devices import engine_device
from msx_llm.measured_plan import MeasuredPlan, Plan
from msx_llm.models.adapter_shape import AdapterShape
from msx_llm.models.config import DecoderConfig
from msx_llm.models.decoder import Decoder
from msx_llm.models.kernels import Kernels
from msx_llm.models.loaded import LoadedDecoder
from msx_llm.models.parts import DecoderParts
from msx_llm.models.weights import Checkpoint
from msx_llm.steps import EngineRunner
from msx_sdk.mindspore.parallel import Parallel


def load_runner(
    folder: Path,
    config: DecoderConfig,
    plan: Plan,
    parallel: Parallel,
    kernels: Kernels | None = None,
    adapters: AdapterShape | None = None,
    chooses: bool = True,
) -> EngineRunner:
    """Loads the weights first, because `plan` may ask the device how much memory they leave beside the largest step,
    which is tried for that. `kernels`: others than those of the device. `adapters`: room for them. `chooses`: tokens
    are chosen on the device if it can. Raises HandlerLoadError if the model cannot be divided like this, or cannot
    generate."""
    check_generates(config)
    check_division(config, parallel)
    if kernels is None:
        engine_device(parallel.target).check_model(config)
    parts = DecoderParts(parallel, kernels or engine_device(parallel.target).kernels(config), adapters)
    with without_data():
        decoder = Decoder(config, parts, own_layers(config, parallel))
    load = partial(_load, decoder, folder, config)
    load()
    decoder.set_train(False)
    used = parameter_size(decoder)
    if isinstance(plan, MeasuredPlan):
        trial = LoadedDecoder(decoder, config, plan.of_trial(used), parts, load)
        used = max(used, plan.device.largest_step(trial, chooses))
    runner: EngineRunner = parts.kernels.runner(LoadedDecoder(decoder, config, plan(used), parts, load), chooses)
    return runner


def _load(decoder: Decoder, folder: Path, config: DecoderConfig) -> None:
    """Raises HandlerLoadError."""
    with Checkpoint(folder, config) as checkpoint:
        decoder.load(checkpoint)
