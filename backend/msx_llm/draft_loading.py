"""Loads the small model that writes drafts, which is a folder beside the model's own files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from msx_core.config import SpeculativeOptions
from msx_llm.division import check_forgets, check_same_tokens
from msx_llm.draft_model import DraftModel
from msx_llm.limits import EngineLimits
from msx_llm.models.config import DecoderConfig
from msx_llm.models.registry import read_config
from msx_llm.sizing.quantised import weight_bytes
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore import collectives
from msx_sdk.mindspore.parallel import Parallel

ALONE = "alone"


def draft_config(folder: Path, options: SpeculativeOptions | None, of: DecoderConfig) -> DecoderConfig | None:
    """The configuration of the small model; None if there is none. Raises HandlerLoadError."""
    if options is None or options.method != "draft":
        return None
    own = draft_folder(folder, options)
    config = read_config(own)
    check_same_tokens(f"speculative.model: {options.model}", config, of)
    check_forgets(f"speculative.model: {options.model}", config)
    return config


def draft_folder(folder: Path, options: SpeculativeOptions) -> Path:
    """Raises HandlerLoadError."""
    own = (folder / options.model).resolve()
    if folder.resolve() not in own.parents or not (own / "config.json").is_file():
        raise HandlerLoadError(
            f"speculative.model: {options.model!r} is not a folder of the archive with a config.json: pack it with "
            "--extra-files, or name it"
        )
    return own


def draft_weights(config: DecoderConfig | None, parallel: Parallel) -> int:
    """Bytes on this rank of the group: the first one has the whole small model, the others have nothing of it."""
    if config is None or parallel.rank:
        return 0
    return weight_bytes(config, Parallel(target=parallel.target))


def alone(parallel: Parallel) -> Parallel:
    """A group of this rank by itself, on the same device."""
    collectives.register(ALONE, (parallel.rank,))
    return Parallel(target=parallel.target, world_group=ALONE)


def load_draft_model(
    folder: Path,
    options: SpeculativeOptions,
    config: DecoderConfig,
    limits: EngineLimits,
    parallel: Parallel,
    report: Callable[[str], None],
    chooses: bool = True,
) -> DraftModel:
    """Load it for the engine's slots and positions, on the first rank of a group. `chooses`: see `load_runner`. Raises
    HandlerLoadError."""
    if limits.context > config.context:
        raise HandlerLoadError(
            f"maxTotalTokens: {limits.context} is more than the {config.context} tokens that speculative.model "
            f"{options.model} takes: give maxTotalTokens of {config.context} at most"
        )
    from msx_llm.runner import load_runner

    largest = {name: getattr(limits, name)[-1:] for name in ("prefill_buckets", "context_buckets")}
    own = replace(limits, **largest, capture_buckets=())
    place = draft_folder(folder, options)
    runner = load_runner(place, config, lambda weights: own, alone(parallel), chooses=chooses)
    runner.warm_up(lambda shape: report(f"draft model: {shape}"))
    return DraftModel(runner, runner.prefill_size)
