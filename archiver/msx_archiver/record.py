"""The state of an unpacked archive's files when it was unpacked, to tell later whether they were changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from msx_archiver.copying import NullSink, copy
from msx_archiver.digests import stamp
from msx_archiver.folder_archive import walk_files
from msx_sdk._internal.manifest import FileEntry

SMALL = 1 << 20
"""Bytes: files up to that size are read for their digest where the manifest has none."""


class FileRecord(msgspec.Struct, frozen=True, array_like=True):
    """One file: size in bytes, modification time in ns, inode, and the SHA-256 if it is known."""

    size: int
    modified: int
    inode: int
    sha256: str | None = None


Record = dict[str, FileRecord]
"""By path in the folder."""


def take(folder: Path, listed: Mapping[str, FileEntry]) -> Record:
    """Of a folder whose content is what the manifest says. Raises OSError."""
    return {file.relative_to(folder).as_posix(): _note(folder, file, listed) for file in walk_files(folder)}


def expected(listed: Mapping[str, FileEntry]) -> Record:
    """By the manifest alone: the digest of every file decides."""
    return {path: FileRecord(entry.size, 0, 0, entry.sha256) for path, entry in listed.items()}


def write(path: Path, record: Record) -> None:
    """Without it all still works, only slower: a full disk is reported by who needs it."""
    aside = path.with_name(f"{path.name}-{os.getpid()}")
    with suppress(OSError):
        aside.write_bytes(msgspec.json.encode(record))
        aside.replace(path)
    with suppress(OSError):
        aside.unlink()


def read(path: Path) -> Record | None:
    """None where there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return None


def changed(folder: Path, record: Record) -> tuple[list[str], Record]:
    """The files that are not what they were, and the record as it would be now. Raises OSError.

    Only what has another size, time or inode is read: then its digest decides.
    """
    now: Record = {}
    for path, noted in record.items():
        if (found := _look(folder / path, noted)) is not None:
            now[path] = found
    return [path for path in record if path not in now], now


def _look(file: Path, noted: FileRecord) -> FileRecord | None:
    """None for a file that is gone or another."""
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
