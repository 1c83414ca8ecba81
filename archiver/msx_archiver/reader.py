"""Opens an archive by its content, not by its name."""

from pathlib import Path

from msx_archiver.archive import Archive
from msx_archiver.errors import ArchiveError
from msx_archiver.folder_archive import FolderArchive
from msx_archiver.guard import ArchiveLimits
from msx_archiver.schema import MODEL, WORKFLOW, ArchiveSchema, M
from msx_archiver.tgz_archive import TgzArchive
from msx_archiver.zip_archive import ZipArchive
from msx_core.file_kinds import foreign_kind, head_of
from msx_core.manifest import Manifest
from msx_core.workflow_manifest import WorkflowManifest

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP = b"\x1f\x8b"


def open_archive(path: Path, limits: ArchiveLimits | None = None) -> Archive[Manifest]:
    """Opens the model at `path`: a zip, a gzipped tar or a folder; every member's name, kind and size is checked.

    A context manager. Raises ArchiveError if it is missing, damaged or not a model archive, and HostileArchiveError if
    it holds members that models do not need.
    """
    return open_as(MODEL, path, limits)


def open_workflow(path: Path, limits: ArchiveLimits | None = None) -> Archive[WorkflowManifest]:
    """The same for a workflow: torch-workflow-archiver's `.war`, or a folder with its content."""
    return open_as(WORKFLOW, path, limits)


def open_as(schema: ArchiveSchema[M], path: Path, limits: ArchiveLimits | None = None) -> Archive[M]:
    try:
        archive = _open(schema, path, limits or ArchiveLimits())
        try:
            archive.load_manifest()
        except BaseException:
            archive.close()
            raise
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror or error}.") from error
    return archive


def _open(schema: ArchiveSchema[M], path: Path, limits: ArchiveLimits) -> Archive[M]:
    what = f"{path} is not a {schema.noun} archive"
    if path.is_dir():
        return FolderArchive(path, schema)
    if path.exists() and not path.is_file():
        raise ArchiveError(f"{what}: it is neither a file nor a folder.")
    head = head_of(path)
    magic = head[:4]
    if magic in _ZIP:
        return ZipArchive(path, schema, limits)
    if magic.startswith(_GZIP):
        return TgzArchive(path, schema, limits)
    if other := foreign_kind(head):
        raise ArchiveError(f"{what}: it is {other.name}. {other.remedy[0].upper()}{other.remedy[1:]}.")
    found = "it is empty" if not magic else "it is neither a zip file, nor a gzipped tar, nor a folder"
    raise ArchiveError(f"{what}: {found}.")
