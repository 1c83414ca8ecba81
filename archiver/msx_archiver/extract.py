"""Writes an archive's files into a folder: the only place where bytes of an archive are written to disk."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO

from msx_archiver.archive import Archive, damage_named
from msx_archiver.contents import difference, missing
from msx_archiver.copying import Progress, Watch, ignore, pour, unwatched
from msx_archiver.errors import ArchiveError
from msx_archiver.guard import ArchiveLimits
from msx_archiver.members import ArchiveMember, MemberKind
from msx_archiver.reader import open_archive
from msx_archiver.room import room
from msx_archiver.schema import M
from msx_archiver.sizes import human


def extract(archive: Archive[M], folder: Path, progress: Progress = ignore) -> None:
    """Writes all files of a checked archive below `folder`, which must be empty and ours alone.

    Digests of the manifest are compared while writing; if the manifest lists files, any other file is an error, too.
    Raises ArchiveError; then the caller deletes the folder.
    """
    if lost := missing(archive):
        raise ArchiveError(f"{archive.path} is damaged: {'; '.join(sorted(lost))}.")
    try:
        folder.chmod(0o755)
        _write_all(archive, folder, progress)
    except OSError as error:
        raise ArchiveError(
            f"{archive.path} cannot be unpacked into {folder.parent}: {error.strerror or error}: "
            f"{room(folder.parent, archive.unpacked_size)}."
        ) from error


def unpack_to(path: Path, folder: Path, limits: ArchiveLimits | None = None, watch: Watch = unwatched) -> None:
    """Unpacks the archive at `path` as the new folder `folder`; it is unpacked aside first. Raises ArchiveError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArchiveError(f"{folder} already exists; name a folder that does not, or an empty one.")
    with open_archive(path, limits) as archive:
        folder.parent.mkdir(parents=True, exist_ok=True)
        check_room(archive, folder.parent)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            with watch(f"Unpacking {path.name}", archive.unpacked_size) as progress:
                extract(archive, aside, progress)
            aside.rename(folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def check_room(archive: Archive[M], folder: Path) -> None:
    """Raises ArchiveError if the disk of `folder` does not have enough room, before anything is written."""
    free = shutil.disk_usage(folder).free
    if archive.unpacked_size > free:
        raise ArchiveError(
            f"{archive.path} needs {human(archive.unpacked_size)} to be unpacked, but {folder} has only "
            f"{human(free)} left."
        )


def _write_all(archive: Archive[M], folder: Path, progress: Progress) -> None:
    for member in archive.members:
        target = folder / member.path
        (target if member.kind is MemberKind.FOLDER else target.parent).mkdir(parents=True, exist_ok=True)
        if member.kind is MemberKind.FILE:
            _write(archive, member, target, progress)
    for member in archive.members:
        if member.kind is MemberKind.LINK:
            os.link(folder / member.target, folder / member.path)


def _write(archive: Archive[M], member: ArchiveMember, target: Path, progress: Progress) -> None:
    # "x": never through something that is already there. Buffered: a raw write may stop half-way on a full disk.
    with target.open("x+b") as file, damage_named(archive.path, member.path):
        wrong = _fill(file, archive, member, progress)
        os.fchmod(file.fileno(), 0o755 if member.executable else 0o644)
    if wrong:
        raise ArchiveError(f"{archive.path} is damaged: {wrong}.")


def _fill(file: BinaryIO, archive: Archive[M], member: ArchiveMember, progress: Progress) -> str | None:
    """Writes the member; returns its difference from the manifest, if any."""
    listed = archive.manifest.files
    if listed and member.path != archive.schema.manifest_path:
        return difference(listed, member.path, archive.copy(member, file, progress))
    with archive.open(member) as source:
        pour(source, file, progress)
    return None
