"""Folders as archives: `--archive-format no-archive`. They are used in place."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msx_archiver.archive import Archive
from msx_archiver.copying import ByteSource
from msx_archiver.errors import ArchiveError
from msx_archiver.members import ArchiveMember, MemberKind
from msx_archiver.schema import ArchiveSchema, M

_MANIFEST_FOLDERS = ("MAR-INF", "WAR-INF")


class FolderArchive(Archive[M]):
    """`root` is the model's folder: `path`, or the only entry in it if that is a folder (as SageMaker mounts them)."""

    format = "no-archive"

    def __init__(self, path: Path, schema: ArchiveSchema[M]) -> None:
        super().__init__(path, schema)
        self.root = model_root(path)
        self.members = [_member(self.root, file) for file in walk_files(self.root)]

    @contextmanager
    def open(self, member: ArchiveMember) -> Iterator[ByteSource]:
        with (self.root / member.path).open("rb") as file:
            yield file

    def close(self) -> None:
        """Does nothing: no file is held open."""


def walk_files(root: Path) -> Iterator[Path]:
    """All files below `root` in a fixed order, including links to files; links to folders are not followed."""
    for folder, folders, names in os.walk(root, onerror=_unreadable):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names))


def _unreadable(error: OSError) -> None:
    raise ArchiveError(f"{error.filename} cannot be read: {error.strerror}.") from error


def model_root(path: Path) -> Path:
    """`path`, or its only entry if that is a folder."""
    inside = list(path.iterdir())
    is_wrapped = len(inside) == 1 and inside[0].is_dir() and inside[0].name not in _MANIFEST_FOLDERS
    return inside[0] if is_wrapped else path


def _member(root: Path, file: Path) -> ArchiveMember:
    path = file.relative_to(root).as_posix()
    kind = MemberKind.FILE if file.is_file() else MemberKind.SPECIAL
    status = file.stat() if kind is MemberKind.FILE else file.lstat()
    return ArchiveMember(path, path, kind, status.st_size, bool(status.st_mode & 0o111))
