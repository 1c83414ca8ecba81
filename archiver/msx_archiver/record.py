"""The state of an unpacked archive's files when it was unpacked, to tell later whether they were changed."""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from msx_archiver.copying import NullSink, copy
from msx_archiver.digests import stamp
from msx_archiver.folder_archive import walk_files
from msx_core.manifest import FileEntry

SMALL = 1 << 20
"""Bytes: smaller files are read for their digest if the manifest does not have one."""


class FileRecord(msgspec.Struct, frozen=True, array_like=True):
    """One file: size in bytes, modification time in ns, inode, and the SHA-256 if it is known."""

    size: int
    modified: int
    inode: int
    sha256: str | None = None


Record = dict[str, FileRecord]
"""File records by path in the folder."""


def take(folder: Path, listed: Mapping[str, FileEntry]) -> Record:
    """Records a folder whose content is as the manifest says. Raises OSError."""
    return {file.relative_to(folder).as_posix(): _note(folder, file, listed) for file in walk_files(folder)}


def expected(listed: Mapping[str, FileEntry]) -> Record:
    """A record from the manifest alone: only digests are compared."""
    return {path: FileRecord(entry.size, 0, 0, entry.sha256) for path, entry in listed.items()}


def write(path: Path, record: Record) -> None:
    """Ignores errors: without the record everything works, only slower, and a full disk is reported elsewhere."""
    aside = path.with_name(f"{path.name}-{secrets.token_hex(4)}")  # in containers all processes may have one id
    with suppress(OSError):
        aside.write_bytes(msgspec.json.encode(record))
        aside.replace(path)
    with suppress(OSError):
        aside.unlink()


def read(path: Path) -> Record | None:
    """None if there is not a readable record."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return None


def changed(folder: Path, record: Record) -> tuple[list[str], Record]:
    """The files that have changed, and the current record. Raises OSError.

    Only files with another size, time or inode are read: then their digest decides.
    """
    now: Record = {}
    for path, noted in record.items():
        if (found := _look(folder / path, noted)) is not None:
            now[path] = found
    return [path for path in record if path not in now], now


def _look(file: Path, noted: FileRecord) -> FileRecord | None:
    """The file's current record; None for a file that is missing or was replaced."""
    try:
        size, modified, inode = stamp(file)
        if (size, modified, inode) == (noted.size, noted.modified, noted.inode):
            return noted
        same = size == noted.size and noted.sha256 is not None and digest(file) == noted.sha256
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    return FileRecord(size, modified, inode, noted.sha256) if same else None


def _note(folder: Path, file: Path, listed: Mapping[str, FileEntry]) -> FileRecord:
    size, modified, inode = stamp(file)
    entry = listed.get(file.relative_to(folder).as_posix())
    return FileRecord(size, modified, inode, entry.sha256 if entry else digest(file) if size <= SMALL else None)


def digest(file: Path) -> str:
    """SHA-256. Raises OSError."""
    with file.open("rb", buffering=0) as source:
        return copy(source, NullSink()).sha256
