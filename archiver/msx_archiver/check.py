"""Compares a MindIR with the checkpoint that it was exported from. Runs MindSpore."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msx_archiver.errors import CheckError
from msx_core.config import ConfigError, load_model_config
from msx_core.errors import HandlerLoadError
from msx_core.mindir_indices import index_limits
from msx_core.model_options import ModelOptions

if TYPE_CHECKING:
    from msx_core.mindspore.comparison import ComparedOutput


def check(
    mindir: Path, source: Path, weights: Path, config_file: Path | None, tolerance: float | None
) -> list[ComparedOutput]:
    """Gives made-up rows to both, at 1, 2 and 3 rows. Raises CheckError for what cannot be loaded or run."""
    config = _config(config_file)
    for path in (mindir, source, weights):
        if not path.is_file():
            raise CheckError(f"{path} does not exist.")
    mindir, source, weights = mindir.resolve(), source.resolve(), weights.resolve()
    try:
        with _elsewhere():
            return _compare(mindir, source, weights, config, tolerance)
    except ImportError as error:
        raise CheckError(f"The comparison runs MindSpore, which is not installed: {error}.") from None
    except (HandlerLoadError, RuntimeError, TypeError, ValueError) as error:
        raise CheckError(f"{mindir.name} and {source.name} cannot be compared: {error}") from error


def _compare(
    mindir: Path, source: Path, weights: Path, config: dict[str, Any], tolerance: float | None
) -> list[ComparedOutput]:
    from msx_core.mindspore.cells import create_cell
    from msx_core.mindspore.comparison import compared, eager, plain_context, sample_count
    from msx_core.mindspore.network import load_mindir_file
    from msx_core.mindspore.sample_rows import sample_rows
    from msx_sdk.mindspore import load_parameters, read_options, setup

    context = plain_context(mindir, config)
    setup(context)
    network = load_mindir_file(mindir, context)
    cell = create_cell(source, read_options(context, "model", ModelOptions))
    load_parameters(cell, weights)
    cell.set_train(False)
    rows = sample_rows(network.inputs, sample_count(network), index_limits(mindir))
    return list(compared(network, eager(cell), rows, tolerance))


def _config(file: Path | None) -> dict[str, Any]:
    try:
        return {} if file is None else load_model_config(file)[0].raw
    except (OSError, ConfigError) as error:
        raise CheckError(str(error)) from None


@contextmanager
def _elsewhere() -> Iterator[None]:
    """MindSpore writes into the current folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="msx-check-") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
