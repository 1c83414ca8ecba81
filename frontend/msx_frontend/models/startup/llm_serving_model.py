"""`--llm-serving`: the model that a yaml of llm-serving names, as a model's folder of links for the start."""

import logging
from collections.abc import Sequence
from pathlib import Path

from msx_archiver.errors import ArchiveError
from msx_archiver.llm_serving.config import read_config
from msx_archiver.llm_serving.model import imported_model
from msx_archiver.llm_serving.packing import link_imported
from msx_archiver.llm_serving.report import report
from msx_frontend.models.startup.huggingface_folders import HuggingFaceError, named_checkpoints
from msx_frontend.models.startup.servable_folders import PackedServables

log = logging.getLogger("msx.startup")


def link_llm_serving(file: Path, huggingface: Sequence[str], into: Path, packed: PackedServables) -> None:
    """Adds to `packed` the folder that is made below `into`, or why it could not be made. Each key is logged with what
    became of it. `huggingface`: the values of `--huggingface`. Blocks. Raises HuggingFaceError for several."""
    weights = weights_of(huggingface)
    try:
        config, given = read_config(file)
        weights = weights or config.weights
        for line in report(config, given, huggingface=weights is not None):
            log.info("%s: %s", file, line)
        packed.archives.append(link_imported(imported_model(config, weights), into / config.name))
    except (ArchiveError, OSError) as error:
        packed.failures.append((f"the model of {file} could not be loaded: {error}", str(file)))


def weights_of(huggingface: Sequence[str]) -> Path | None:
    """The folder of weights. Raises HuggingFaceError where several are given."""
    folders = [folder for _, folder in named_checkpoints(huggingface)]
    if len(folders) > 1:
        raise HuggingFaceError(
            f"--huggingface: {len(folders)} folders, and the model of --llm-serving is one; serve the others by a "
            "server without --llm-serving"
        )
    return folders[0] if folders else None
