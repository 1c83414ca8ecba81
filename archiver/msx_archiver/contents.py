"""Compares the files of an archive with its manifest."""

from msx_archiver.archive import Archive, damage_named
from msx_archiver.copying import NullSink, Progress, copy, ignore
from msx_archiver.errors import ArchiveError
from msx_archiver.members import MemberKind
from msx_archiver.schema import M
from msx_core.manifest import FileEntry


def read_entries(archive: Archive[M], progress: Progress = ignore) -> dict[str, FileEntry]:
    """Size and digest of every file; reads all of them once. Raises ArchiveError if one cannot be read."""
    entries: dict[str, FileEntry] = {}
    for member in archive.files:
        if member.kind is MemberKind.FILE:
            with damage_named(archive.path, member.path), archive.open(member) as source:
                entries[member.path] = copy(source, NullSink(), progress)
    links = {member.path: entries[member.target] for member in archive.files if member.kind is MemberKind.LINK}
    return entries | links


def differences(archive: Archive[M], entries: dict[str, FileEntry]) -> list[str]:
    """One clause for each file that differs from the manifest; empty if the manifest does not list files."""
    listed = archive.manifest.files
    if not listed:
        return []
    own = entries.keys() - {archive.schema.manifest_path}
    wrong = [found for path in own if (found := difference(listed, path, entries[path]))]
    return wrong + missing(archive)


def difference(listed: dict[str, FileEntry], path: str, entry: FileEntry) -> str | None:
    expected = listed.get(path)
    if expected is None:
        return f"'{path}' is not in the manifest's list of files"
    if expected.size != entry.size:
        return f"'{path}' has {entry.size} bytes, where the manifest says {expected.size}"
    if expected.sha256 != entry.sha256:
        return f"'{path}' does not have the digest that the manifest says ({expected.sha256[:12]}…)"
    return None


def missing(archive: Archive[M]) -> list[str]:
    present = {member.path for member in archive.files}
    return [f"'{path}' is in the manifest but not in the archive" for path in archive.manifest.files.keys() - present]


def verify(archive: Archive[M], progress: Progress = ignore) -> int:
    """Reads every byte and compares it with the manifest; returns the number of files without the manifest. Raises
    ArchiveError, which names all files that differ.

    Archives of torch-model-archiver do not have digests: there the zip's own checksums are checked.
    """
    entries = read_entries(archive, progress)
    wrong = differences(archive, entries)
    if wrong:
        raise ArchiveError(f"{archive.path} is damaged: {'; '.join(sorted(wrong))}.")
    return len(entries.keys() - {archive.schema.manifest_path})
