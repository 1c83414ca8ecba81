"""`--extra-files`, by the rules of torch-model-archiver."""

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from msx_archiver.errors import PackError
from msx_core.manifest import MANIFEST_PATH

_DROPPED = ("__pycache__", "__MACOSX")


def expand_extra_files(listed: str) -> tuple[list[tuple[str, Path]], list[str]]:
    """Pairs of path in the archive and file on disk, and warnings.

    A file goes to the archive's root, and so does a folder's content (with its sub-folders, but without hidden ones and
    `__pycache__`); `*`, `?` and `[]` are globs. Raises PackError for a file that does not exist.
    """
    found: list[tuple[str, Path]] = []
    warnings: list[str] = []
    for item in filter(None, (item.strip() for item in listed.split(","))):
        paths = _match(item)
        if not paths:
            warnings.append(f"--extra-files: nothing matches '{item}'.")
        for path in paths:
            found += _content(path) if path.is_dir() else [(path.name, path)]
    warnings += [f"--extra-files: the old manifest {file} is left out." for path, file in found if _is_old(path)]
    return [(path, file) for path, file in found if not _is_old(path)], warnings


def _is_old(path: str) -> bool:
    return path == MANIFEST_PATH


def _match(item: str) -> list[Path]:
    if os.path.lexists(item):
        return [Path(item)]
    if any(char in item for char in "*?["):
        return [Path(path) for path in sorted(glob.glob(item))]
    raise PackError(f"--extra-files: '{item}' does not exist.")


def _content(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _DROPPED)
        for name in sorted(names):
            file = Path(folder, name)
            yield file.relative_to(root).as_posix(), file
