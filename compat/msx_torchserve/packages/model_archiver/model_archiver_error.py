"""`model_archiver.model_archiver_error`."""

from msx_archiver.errors import ArchiveError as ModelArchiverError

__all__ = ["ModelArchiverError"]
