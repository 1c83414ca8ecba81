"""Names that the modules of an archive cannot have, because others are imported by them."""

import os
import sys
from pathlib import Path

_OF_WORKERS = frozenset(
    {
        "mindspore",
        "msgspec",
        "msx_backend",
        "msx_core",
        "msx_mindspore_serving",
        "msx_torchserve",
        "msx_llm",
        "msx_protocol",
        "msx_sdk",
        "numpy",
    },
)


def hides(file: str) -> str | None:
    """The sentence, without its full stop, for a file at the root of an archive that hides another module from the
    worker, which has that folder on its path; None for other files."""
    stem, _, suffix = file.rpartition(".")
    if suffix != "py" or not (stem in _OF_WORKERS or stem in sys.stdlib_module_names):
        return None
    hidden = f"the package {stem}" if stem in _OF_WORKERS else f"Python's module {stem}"
    return f"{file} has the name of {hidden}, and hides it from all that import that: rename the file"


def first_that_hides(model_dir: Path) -> str | None:
    """The sentence for the first such file of an unpacked archive."""
    try:
        return next(filter(None, map(hides, sorted(os.listdir(model_dir)))), None)
    except OSError:
        return None
