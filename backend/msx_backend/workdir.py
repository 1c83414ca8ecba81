"""The private working directory of one worker process."""

from __future__ import annotations

import os
from pathlib import Path


def furnish(model_dir: Path) -> None:
    """Link the archive's files into the current folder.

    TorchServe's handlers run in the model's folder and may open files by bare names, while MindSpore writes
    `rank_0/` and the like into the current folder; with links both are served and the archive stays untouched.
    """
    for entry in model_dir.resolve().iterdir():
        if not os.path.lexists(entry.name):
            os.symlink(entry, entry.name)
