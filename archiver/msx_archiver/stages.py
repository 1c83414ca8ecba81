"""Packs the files that the stages of a model name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msx_archiver.errors import PackError
from msx_archiver.python_files import check_module, find_handler

if TYPE_CHECKING:
    from msx_core.config import Pipeline


def stage_files(pipeline: Pipeline, packed: Collection[str], beside: Path) -> Iterator[tuple[str, Path]]:
    """The files that the stages name and that are not among the packed ones: they stand `beside` the config file.

    Raises PackError for one that is missing, and for a handler that is neither a file nor an installed one.
    """
    for name, stage in pipeline.stages.items():
        location = stage.handler.partition(":")[0]
        if f"{location}.py" not in packed and not location.endswith(".py"):
            find_handler(stage.handler)
        for file in stage.files:
            if file in packed:
                continue
            found = beside / file
            if not found.is_file():
                raise PackError(
                    f"--config-file: stages.{name} needs the file {file}, which is neither beside the config file nor "
                    "packed: give it by --extra-files."
                )
            if file.endswith(".py"):
                check_module(found, f"--config-file: stages.{name}")
            yield file, found
