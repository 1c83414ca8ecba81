"""The private working directory of one worker process."""

import os
from pathlib import Path


def furnish(model_dir: Path) -> None:
    """Links the archive's files into the current folder.

    TorchServe's handlers run in the model's folder and may open files by their names, while MindSpore writes `rank_0/`
    and other folders into the current folder; with links both work, and the archive is not changed.
    """
    for entry in model_dir.resolve().iterdir():
        if not os.path.lexists(entry.name):
            os.symlink(entry, entry.name)
