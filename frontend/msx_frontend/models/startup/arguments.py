"""Meaning of `--models` and `load_models`: archives of the model store, paths, URLs."""

import os
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Protocol

from msx_archiver.errors import ArchiveError
from msx_archiver.reader import open_archive
from msx_core.names import MODEL_NAME
from msx_core.start_errors import StartError
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.guess import MINDIR, PYTHON, name_of
from msx_frontend.archives.suffixes import ARCHIVE_SUFFIXES
from msx_frontend.shown_url import shown_url, without_secrets

MOST_SHOWN = 5
"""Archives that a message names when the wanted one is missing."""
_FLAGS = ("start", "stop", "status", "version", "help")


class StartupError(StartError):
    """A file of the command line does not exist, or is no archive."""


class Archives(Protocol):
    """The model store."""

    @property
    def root(self) -> Path: ...

    def all_archives(self) -> list[Path]: ...


def expand(model: str, store: Archives) -> list[tuple[str | None, Path | ArchiveUrl]]:
    """`all`, `none`, `file.mar`, `name=file.mar`, `name=https://…`; an existing path is used as is."""
    if model == "all":
        return [(None, path) for path in store.all_archives()]
    if model == "none" or not model:
        return []
    name, location = _name_and_location(model)
    url = ArchiveUrl.split(location)
    if url.is_remote:
        return [(name, url)]
    path = Path(location) if Path(location).exists() else store.root / location
    if not path.exists():
        where = f"neither a path nor in the model store {store.root}"
        nowhere = f"--models {without_secrets(model)}: {shown_url(location)} is {where}"
        raise StartupError(nowhere + _meant(model, store.all_archives()))
    _check_archive(path)
    return [(name, Path(os.path.abspath(path)))]


def _check_archive(path: Path) -> None:
    """Refuse a file that is neither named as an archive nor one. Raises StartupError, which says how it is packed.

    A damaged archive does not keep the server's other models from starting.
    """
    if path.is_dir() or path.name.endswith(ARCHIVE_SUFFIXES):
        return
    try:
        open_archive(path).close()
    except ArchiveError as error:
        raise StartupError(f"{error} {_packing(path)}") from None


def _packing(path: Path) -> str:
    if path.suffix in (MINDIR, PYTHON):
        return f"`msx-serve {quote(str(path))}`, with no other model, serves it as it is; or pack it with msx-archiver."
    line = f"  msx-archiver --model-name {name_of(path)} --version 1.0 --handler"
    file = f"--serialized-file {quote(str(path))}"
    network = quote(path.stem + PYTHON)
    return (
        f"Pack weights with the network's Python file, or with a handler of yours that reads {path.name}:\n"
        f"{line} checkpoint --model-file {network} {file}\n"
        f"{line} handler.py {file}\n"
        f"Without packing: msx-serve {network} --weights {quote(str(path))}"
    )


def _name_and_location(model: str) -> tuple[str | None, str]:
    """`name=location`, where a location may have `=` too."""
    name, _, location = model.partition("=")
    if not location or Path(model).exists() or not MODEL_NAME.fullmatch(name):
        return None, model
    return name, location


def _meant(model: str, there: Sequence[Path]) -> str:
    """A hint for an argument that is not an archive: a comma-separated list, a flag without dashes, or a missing
    file."""
    if "," in model:
        models = " ".join(part for part in map(str.strip, model.split(",")) if part)
        return f"; models are separated by spaces: --models {models}"
    if model in _FLAGS:
        return f"; did you mean --{model}?"
    names = ", ".join(path.name for path in there[:MOST_SHOWN])
    return f", which has {names}{', …' if len(there) > MOST_SHOWN else ''}" if there else ", which has no archives"
