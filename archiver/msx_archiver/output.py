"""Puts a finished archive in its place, and reads SOURCE_DATE_EPOCH."""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msx_archiver.copying import Progress, Watch
from msx_archiver.errors import PackError
from msx_archiver.room import why
from msx_archiver.sizes import human

Warn = Callable[[str], None]


def silent(sentence: str) -> None:
    """Drops warnings."""


def make(target: Path, size: int, write: Callable[[Path, Progress], None], watch: Watch) -> None:
    """Has `write` make the archive aside, then puts it in its place; missing folders above it are made. `size` is the
    number of bytes to be read. Raises PackError; then nothing was replaced."""
    with (
        errors_named(f"{target} cannot be written, it needs about {human(size)}", target),
        watch(f"Packing {target.name}", size) as progress,
    ):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _aside(target) as new:
            write(new, progress)
            _replace(new, target)


def _replace(new: Path, target: Path) -> None:
    if target.is_dir():  # a folder cannot be renamed over another one
        target.rename(new.with_name("replaced"))
    new.rename(target)


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """A path in a temporary folder on the target's disk; the folder is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield folder / target.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def errors_named(problem: str, target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise PackError(f"{problem}: {why(error, target)}{where}.") from error


def source_date() -> int | None:
    """SOURCE_DATE_EPOCH in seconds since 1970 (https://reproducible-builds.org/specs/source-date-epoch/)."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,10}", text):
        raise PackError(f"SOURCE_DATE_EPOCH is '{text}'; it must be a number of seconds since 1970.")
    return int(text)


def created_on(moment: int | None) -> str:
    fields = time.localtime() if moment is None else time.gmtime(moment)
    return time.strftime("%d/%m/%Y %H:%M:%S", fields)


def own_version() -> str | None:
    try:
        return version("msx-serve")
    except PackageNotFoundError:
        return None
