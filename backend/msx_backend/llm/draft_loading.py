"""Loads the small model that writes drafts, which is a folder beside the model's own files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from msx_backend.llm.draft_model import DraftModel
from msx_backend.llm.limits import EngineLimits
from msx_backend.llm.models.config import DecoderConfig
from msx_backend.llm.models.registry import read_config
from msx_sdk._internal.config import SpeculativeOptions
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel


def draft_config(
    folder: Path, options: SpeculativeOptions | None, of: DecoderConfig, parallel: Parallel
) -> DecoderConfig | None:
    """The configuration of the small model; None if there is none. Raises HandlerLoadError."""
    if options is None or options.method != "draft":
        return None
    if parallel.target != "CPU" or parallel.world_size > 1:
        raise HandlerLoadError(
            "speculative.method: draft is for one rank on a CPU: take ngram, or leave parallelType out"
        )
    own = draft_folder(folder, options)
    config = read_config(own)
    if config.vocab_size != of.vocab_size:
        raise HandlerLoadError(
            f"speculative.model: {options.model} has {config.vocab_size} tokens and the model {of.vocab_size}: both "
            "must have the same tokenizer"
        )
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


def load_draft_model(
    folder: Path,
    options: SpeculativeOptions,
    config: DecoderConfig,
    limits: EngineLimits,
    parallel: Parallel,
    report: Callable[[str], None],
) -> DraftModel:
    """Of as many slots and positions as the engine has. Raises HandlerLoadError."""
    if limits.context > config.context:
        raise HandlerLoadError(
            f"maxTotalTokens: {limits.context} is more than the {config.context} tokens that speculative.model "
            f"{options.model} takes: give maxTotalTokens of {config.context} at most"
        )
    from msx_backend.llm.runner import load_runner

    own = replace(limits, prefill_buckets=limits.prefill_buckets[-1:], context_buckets=limits.context_buckets[-1:])
    runner = load_runner(draft_folder(folder, options), config, lambda weights: own, parallel)
    runner.warm_up(lambda shape: report(f"draft model: {shape}"))
    return DraftModel(runner, runner.prefill_size)
