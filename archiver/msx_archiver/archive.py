"""An open archive of any format: its files, its manifest, and its bytes."""

from __future__ import annotations

import mmap
import struct
import tarfile
import tempfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from lzma import LZMAError
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Generic

from msx_archiver.copying import ByteSource, Progress, copy, ignore
from msx_archiver.digests import stamp
from msx_archiver.errors import ArchiveError
from msx_archiver.members import ArchiveMember, MemberKind
from msx_archiver.schema import ArchiveSchema, M
from msx_archiver.sizes import MIB, human
from msx_core.manifest import FileEntry, ManifestError

MAX_TEXT = 16 * MIB
"""The largest manifest or config in bytes, since they are read into memory."""

View = tuple[bytes | mmap.mmap, int, int]
"""A buffer, and where a file's bytes begin and end in it."""

_DAMAGE = (
    EOFError,
    IndexError,
    LZMAError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def damage_named(path: Path, what: str = "") -> Iterator[None]:
    """Turns any error of the format's library about unreadable bytes into an ArchiveError with the file's name."""
    try:
        yield
    except (OSError, *_DAMAGE) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's, not the decompressor's
        where = f" at '{what}'" if what else ""
        raise ArchiveError(f"{path} is damaged or truncated{where}: {str(error).rstrip('.')}.") from error


class Archive(ABC, Generic[M]):
    """A context manager; made by `msx_archiver.reader.open_archive`."""

    format: str

    def __init__(self, path: Path, schema: ArchiveSchema[M]) -> None:
        self.path = path
        self.schema: ArchiveSchema[M] = schema
        self.stamp = stamp(path)
        """Used to detect later whether the file at `path` is still the one that was opened."""
        self.members: list[ArchiveMember] = []
        self.manifest: M
        self.warnings: list[str] = []

    @abstractmethod
    def open(self, member: ArchiveMember) -> AbstractContextManager[ByteSource]:
        """Opens the bytes of a file member; may raise the errors that `damage_named` translates."""

    def copy(self, member: ArchiveMember, target: BinaryIO, progress: Progress = ignore) -> FileEntry:
        """Writes a file member into the empty file `target`, which is also readable; may raise the same errors as
        `open`."""
        with self.open(member) as source:
            return copy(source, target, progress)

    @abstractmethod
    def close(self) -> None: ...

    @property
    def files(self) -> list[ArchiveMember]:
        """Files, and links to files, in the order in which they are read fastest."""
        return [member for member in self.members if member.kind in (MemberKind.FILE, MemberKind.LINK)]

    @property
    def unpacked_size(self) -> int:
        return sum(member.size for member in self.members)

    def read(self, path: str) -> bytes:
        """Reads a small text file of the archive. Raises ArchiveError if it is missing or too large."""
        member = next((member for member in self.files if member.path == path), None)
        if member is None:
            raise ArchiveError(f"{self.path} has no '{path}'.")
        if member.size > MAX_TEXT:
            raise ArchiveError(f"{path} of {self.path} has {human(member.size)}; the limit is {human(MAX_TEXT)}.")
        with damage_named(self.path, path), self.open(member) as source:
            return b"".join(iter(lambda: source.read(MAX_TEXT), b""))

    @contextmanager
    def view(self, member: ArchiveMember) -> Iterator[View]:
        """The bytes of a member as a buffer; large members are mapped, not read into memory."""
        with tempfile.TemporaryFile() as spool:
            with damage_named(self.path, member.path), self.open(member) as source:
                copy(source, spool)
            spool.flush()
            if not member.size:
                yield b"", 0, 0
                return
            with mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield data, 0, len(data)

    def load_manifest(self) -> None:
        schema = self.schema
        if all(member.path != schema.manifest_path for member in self.files):
            raise ArchiveError(
                f"{self.path} is not a {schema.noun} archive: it has no {schema.manifest_path}. "
                f"Make one with {schema.tool}."
            )
        try:
            self.manifest, self.warnings = schema.parse(self.read(schema.manifest_path))
        except ManifestError as error:
            raise ArchiveError(f"{self.path}: {error}") from None
        self._check_named_files()

    def _is_manifest(self, name: str) -> bool:
        """torch-model-archiver packs both the old manifest of a given folder and the new one."""
        return name == self.schema.manifest_path or name.endswith(f"/{self.schema.manifest_path}")

    def _check_named_files(self) -> None:
        known = {member.path for member in self.files}
        for key, name in self.schema.named_files(self.manifest).items():
            inside = any(path == name or path.startswith(f"{name}/") for path in known)
            if name and not inside:
                raise ArchiveError(f"{self.path}: the manifest's '{key}' is '{name}', which the archive does not have.")

    def __enter__(self) -> Archive[M]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
