"""The identity of an archive's content: 64 hex digits."""

import hashlib
from pathlib import Path

from msx_archiver.archive import Archive
from msx_archiver.folder_archive import walk_files
from msx_archiver.record import digest as digest_of_bytes
from msx_archiver.schema import M


def content_digest(archive: Archive[M]) -> str:
    """SHA-256 of the manifest and the listing if the manifest has the digests of the files; otherwise of all bytes.

    Files are compared with their digests when they are unpacked, so that the first is as reliable as the second, and
    needs no reading. Raises OSError.
    """
    if not archive.manifest.files:
        return digest_of_bytes(archive.path)
    digest = hashlib.sha256(archive.read(archive.schema.manifest_path))
    for member in sorted(archive.members, key=lambda member: member.path):
        entry = (member.path, member.kind.value, member.size, member.executable, member.target)
        digest.update(repr(entry).encode())
    return digest.hexdigest()


def folder_digest(root: Path) -> str:
    """SHA-256 over the relative path, size and modification time of every file below `root`."""
    digest = hashlib.sha256()
    for file in walk_files(root):
        status = file.lstat() if not file.exists() else file.stat()
        digest.update(repr((file.relative_to(root).as_posix(), status.st_size, status.st_mtime_ns)).encode())
    return digest.hexdigest()
