"""How the files of models' archives are called."""

from pathlib import Path

ARCHIVE_SUFFIXES = (".mar", ".tar.gz", ".tgz", ".zip")


def stem(path: Path) -> str:
    """The model's name if neither the command line nor the manifest has one: the file's name (TorchServe's rule)."""
    suffix = next((suffix for suffix in ARCHIVE_SUFFIXES if path.name.endswith(suffix)), "")
    return path.name.removesuffix(suffix)
