"""Pack a model into an archive."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msx_archiver.copying import Progress, Watch, unwatched
from msx_archiver.errors import PackError
from msx_archiver.options import FORMATS, RUNTIMES, PackOptions
from msx_archiver.sizes import human
from msx_archiver.sources import Sources, collect
from msx_archiver.writers import open_writer
from msx_sdk.manifest import MANIFEST_PATH, MODEL_NAME, MODEL_VERSION, Manifest

_SUFFIXES = {"default": ".mar", "zip-store": ".mar", "tgz": ".tar.gz", "no-archive": ""}

Warn = Callable[[str], None]


def _silent(sentence: str) -> None:
    """Warnings that nobody asked for."""


def pack(options: PackOptions, *, warn: Warn = _silent, watch: Watch = unwatched) -> Path:
    """Make the archive that the options describe and return its path; follows torch-model-archiver.

    `warn` is called with one sentence for each oddity. With the environment's SOURCE_DATE_EPOCH, the same
    input gives the same bytes. Raises PackError; then nothing is left behind and nothing was replaced.
    """
    _check_options(options)
    target = options.export_path / f"{options.model_name}{_SUFFIXES[options.archive_format]}"
    _check_target(target, options)
    with _errors_named(f"{target} cannot be made"):
        sources = collect(options)
        _leave_out(sources, target)
    for sentence in sources.warnings:
        warn(sentence)
    with (
        _errors_named(f"{target} cannot be written, it needs about {human(sources.size)}"),
        watch(f"Packing {target.name}", sources.size) as progress,
    ):
        options.export_path.mkdir(parents=True, exist_ok=True)
        with _aside(target) as aside:
            _write(aside, sources, options, progress)
            _replace(aside, target)
    return target


def _check_options(options: PackOptions) -> None:
    if not MODEL_NAME.fullmatch(options.model_name):
        raise PackError(
            f"Model name contains special characters: '{options.model_name}'. It must begin with a letter or digit "
            "and hold only letters, digits, '_', '-' and '.'."
        )
    if not options.version:
        raise PackError("The model version is empty; give one with --version.")
    if not MODEL_VERSION.fullmatch(options.version):
        raise PackError(
            f"Model version '{options.version}' could not be served: it must begin with a letter or digit, hold only "
            "letters, digits, '_', '-', '+' and '.', and not be 'all', which means every version."
        )
    for name, value, known in (
        ("--archive-format", options.archive_format, FORMATS),
        ("--runtime", options.runtime, RUNTIMES),
    ):
        if value not in known:
            raise PackError(f"{name} '{value}' is unknown; it must be one of {', '.join(known)}.")


def _check_target(target: Path, options: PackOptions) -> None:
    if not target.exists():
        return
    if not options.force:
        raise PackError(f"{target} already exists. Give --force/-f to overwrite it.")
    is_ours = not target.is_dir() or not any(target.iterdir()) or (target / MANIFEST_PATH).is_file()
    if not is_ours or target.is_dir() != (options.archive_format == "no-archive"):
        raise PackError(f"{target} is not a model of this format; move it away, --force does not overwrite it.")


def _leave_out(sources: Sources, target: Path) -> None:
    """`--extra-files .` finds the archive that it made the last time."""
    for path, file in list(sources.files.items()):
        if target.exists() and file.resolve().is_relative_to(target.resolve()):
            del sources.files[path]
            sources.warnings.append(f"--extra-files: {file} is left out, it is what is being made.")


def _write(aside: Path, sources: Sources, options: PackOptions, progress: Progress) -> None:
    moment = _source_date()
    writer = open_writer(options.archive_format, aside, options.model_name, moment, progress)
    try:
        files = {path: writer.add(path, sources.files[path]) for path in sorted(sources.files)}
        manifest = Manifest(
            model=sources.model,
            created_on=_created_on(moment),
            runtime=options.runtime,
            archiver_version=_own_version(),
            files=files,
        )
        # The manifest comes last, because only now the digests are known.
        writer.add_bytes(MANIFEST_PATH, manifest.to_json())
    finally:
        writer.close()


def _replace(aside: Path, target: Path) -> None:
    if target.is_dir():  # a folder cannot be renamed over another one
        target.rename(aside.with_name("replaced"))
    aside.rename(target)


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """A path in a folder of our own on the target's disk; whatever lies there is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield folder / target.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _errors_named(problem: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise PackError(f"{problem}: {error.strerror or error}{where}.") from error


def _source_date() -> int | None:
    """https://reproducible-builds.org/specs/source-date-epoch/: seconds since 1970."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,10}", text):
        raise PackError(f"SOURCE_DATE_EPOCH is '{text}'; it must be a number of seconds since 1970.")
    return int(text)


def _created_on(moment: int | None) -> str:
    fields = time.localtime() if moment is None else time.gmtime(moment)
    return time.strftime("%d/%m/%Y %H:%M:%S", fields)


def _own_version() -> str | None:
    try:
        return version("msx-serve")
    except PackageNotFoundError:
        return None
