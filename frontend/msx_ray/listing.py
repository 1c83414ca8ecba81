"""Listing of a content: the files of a folder, so that a node knows what to fetch and whether it has it."""

import hashlib
import math
import platform
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from msx_archiver import record
from msx_archiver.folder_archive import walk_files
from msx_archiver.guard import ArchiveLimits, ExtractionGuard
from msx_archiver.members import ArchiveMember, MemberKind

MAX_FILES = 200_000
MAX_LISTING = 64 << 20
"""Bytes of an encoded listing."""
REQUIREMENTS = "requirements"
COMPILED = "compiled"
"""The kind of a folder that is not fetched: MindSpore puts there what it compiles."""

_LIMITS = ArchiveLimits(max_members=2 * MAX_FILES, max_ratio=math.inf)


class ListedFile(msgspec.Struct, frozen=True, array_like=True):
    """`size` in bytes. Where the SHA-256 is not known yet, the modification time (ns) distinguishes contents."""

    path: str
    size: int
    executable: bool
    sha256: str
    modified: int


class Listing(msgspec.Struct, frozen=True):
    """`suits`: the Python and platform that the files are made for; "" for all."""

    suits: str
    files: list[ListedFile]

    @property
    def total(self) -> int:
        return sum(file.size for file in self.files)


def own_platform() -> str:
    """Platform that requirements are made for."""
    return f"Python {sys.version_info[0]}.{sys.version_info[1]} on {sys.platform}-{platform.machine()}"


def list_folder(root: Path, kind: str) -> Listing:
    """Reads no file, only their sizes and times. Raises OSError or ArchiveError.

    Of an unpacked archive these are the files that were unpacked, with the digests of its manifest; else all, but for
    what Python has compiled. A link to a file is the file.
    """
    noted = record.read(root.parent / f".record-{root.name}") or {}
    paths = sorted(noted) if noted else sorted(_paths(root))
    suits = own_platform() if kind == REQUIREMENTS else ""
    return Listing(suits, [_listed(root, path, noted) for path in paths])


def encode(listing: Listing) -> bytes:
    return msgspec.msgpack.encode(listing)


def digest_of(encoded: bytes) -> str:
    return hashlib.sha256(encoded).hexdigest()


def decode(encoded: bytes) -> Listing:
    """A listing that may be hostile. Raises HostileArchiveError, or ValueError where it cannot be read."""
    listing = msgspec.msgpack.decode(encoded, type=Listing)
    guard = ExtractionGuard(Path("the content"), 1, _LIMITS)
    for file in listing.files:
        guard.admit(ArchiveMember(file.path, file.path, MemberKind.FILE, file.size, file.executable))
    return listing


def _paths(root: Path) -> Iterable[str]:
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is not there any more")
    for file in walk_files(root):
        path = file.relative_to(root)
        if "__pycache__" not in path.parts:
            yield path.as_posix()


def _listed(root: Path, path: str, noted: Mapping[str, record.FileRecord]) -> ListedFile:
    file = root / path
    status = file.stat()
    if not file.is_file():
        raise OSError(f"{file} is not a file that can be sent to a node")
    known, now = noted.get(path), (status.st_size, status.st_mtime_ns, status.st_ino)
    same = known is not None and (known.size, known.modified, known.inode) == now
    sha256 = known.sha256 or "" if known is not None and same else ""
    return ListedFile(path, status.st_size, bool(status.st_mode & 0o111), sha256, 0 if sha256 else status.st_mtime_ns)
