"""The file or folder that packing makes: its place, and whether it may be made there."""

import os
import zipfile
from pathlib import Path

from msx_archiver.errors import ArchiveError, PackError
from msx_archiver.options import PackOptions
from msx_archiver.reader import open_archive
from msx_core.manifest import MANIFEST_PATH

SUFFIXES = {
    "default": (".mar", ".zip"),
    "zip-store": (".mar", ".zip"),
    "tgz": (".tar.gz", ".tgz"),
    "no-archive": (),
}
"""Endings of each format's files, the usual one first. Servers find archives by them."""
WAR = ".war"
_ENDINGS = (WAR, *sorted({suffix for suffixes in SUFFIXES.values() for suffix in suffixes}))
_SOON_READ = 64 << 20
"""Bytes of a gzipped tar that is read to tell what it holds: its manifest comes last."""


def place(name: str, export_path: Path, output: Path | None, suffixes: tuple[str, ...]) -> Path:
    """`output`, or the file `name` in the folder `export_path`. Raises PackError for an `output` of another format, and
    for a folder that has the name of a file."""
    if output is None:
        _check_folder(export_path)
        return export_path / f"{name}{suffixes[0] if suffixes else ''}"
    if output.is_dir() and suffixes:
        raise PackError(f"-o {output} is a folder: name the file in it, or give --export-path {output}.")
    if not output.name.endswith(suffixes or "") or (not suffixes and output.name.endswith(_ENDINGS)):
        wanted = f"its file ends in {' or '.join(suffixes)}" if suffixes else "a folder does not end like a file"
        raise PackError(f"-o {output} does not fit the format of the archive: {wanted}.")
    return output


def check_target(target: Path, options: PackOptions) -> None:
    """Raises PackError where something is in the way that may not be overwritten."""
    if not target.exists():
        return
    if not options.force:
        raise PackError(_is_there(target, options))
    is_ours = not target.is_dir() or not any(target.iterdir()) or (target / MANIFEST_PATH).is_file()
    if not is_ours or target.is_dir() != (options.archive_format == "no-archive"):
        raise PackError(f"{target} is not a model of this format; move it away, --force does not overwrite it.")


def _check_folder(export_path: Path) -> None:
    if export_path.name.endswith(_ENDINGS) and not export_path.is_dir():
        raise PackError(f"--export-path {export_path} names a folder: give -o {export_path} to name the file.")


def _is_there(target: Path, options: PackOptions) -> str:
    """The refusal; it names both ways out where the archive holds another version."""
    held = _held(target)
    if held in (None, (options.model_name, options.version)):
        return f"{target} already exists. Give --force/-f to overwrite it, or -o FILE to make another one."
    suffix = next((one for one in SUFFIXES[options.archive_format] if target.name.endswith(one)), "")
    beside = target.with_name(f"{options.model_name}-{options.version}{suffix}")
    other = beside if not beside.exists() else "FILE"
    return (
        f"{target} already exists, and holds version {held[1]} of {held[0]}. Give -o {other} to make another one, or "
        f"--force/-f to overwrite it."
    )


def _held(target: Path) -> tuple[str, str] | None:
    """Name and version of the model in it; None where that cannot be read, or not at once."""
    if not target.is_dir() and os.path.getsize(target) > _SOON_READ and not zipfile.is_zipfile(target):
        return None
    try:
        with open_archive(target) as archive:
            model = archive.manifest.model
    except (ArchiveError, OSError):
        return None
    return model.model_name or "a model", model.model_version
