"""Checks the model's own files for the handlers that MSX brings: their kind, and the network of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msx_archiver.errors import PackError
from msx_archiver.handler_source import installed
from msx_archiver.networks import check_network
from msx_archiver.options import PackOptions
from msx_archiver.python_files import HandlerFile
from msx_archiver.weights import rank_files
from msx_core.file_kinds import CKPT, MINDIR, SAFETENSORS, foreign_kind, head_of, mistaken

if TYPE_CHECKING:
    from msx_core.config import Pipeline

_ALL = (MINDIR, CKPT, SAFETENSORS)
_ENDINGS = {"mindir": (MINDIR,), "checkpoint": (CKPT, SAFETENSORS)}
"""The endings of the files that these handlers read; others of ours read all three."""


def check_model_files(handler: HandlerFile, section: Any, options: PackOptions) -> None:
    """`section`: `model:` of the config file. Raises PackError for a file of another kind, and for a model file of a
    checkpoint that does not tell its network.

    TorchServe has a handler with the name of one of ours: files with other endings are its own.
    """
    if options.serialized_file is not None:
        for file in rank_files(options.serialized_file):
            _check(handler, file, options.model_file, section, ("--serialized-file", "--model-file"))


def check_stage_files(pipeline: Pipeline, files: Mapping[str, Path]) -> None:
    """The same for each stage; `files` by path in the archive."""
    for name, stage in pipeline.stages.items():
        handler = HandlerFile(stage.handler, files.get(stage.handler.partition(":")[0]))
        file, model_file = files.get(stage.serialized_file or ""), files.get(stage.model_file or "")
        if file is not None:
            _check(handler, file, model_file, stage.config.raw.get("model"), [f"--config-file: stages.{name}"] * 2)


def _check(
    handler: HandlerFile, file: Path, model_file: Path | str | None, section: Any, options: Iterable[str]
) -> None:
    """`options`: what messages about the file begin with, and those about the model file."""
    of_file, of_model = options
    ours = handler.name if installed(handler) is not None else None
    _check_kind(file, ours, of_file)
    if ours and model_file and file.suffix in (CKPT, SAFETENSORS):
        check_network(Path(model_file), section, of_model)


def _check_kind(file: Path, handler: str | None, option: str) -> None:
    """`handler`: None for one that is not ours, which knows its formats itself."""
    head = head_of(file)
    if file.suffix in _ALL and (other := foreign_kind(head)):
        raise PackError(f"{option}: {file} is {other.name}: {other.remedy}.")
    if handler is None:
        return
    known = _ENDINGS.get(handler, _ALL)
    ending = file.suffix if file.suffix in known else known[0] if handler in _ENDINGS else None
    if ending is not None and (sentence := mistaken(str(file), ending, head)):
        raise PackError(f"{option}: {sentence}.")
    if handler == "checkpoint" and file.suffix not in known:
        raise PackError(f"{option}: {file}: --handler checkpoint reads files that end in {' or '.join(known)}.")
