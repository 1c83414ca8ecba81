"""Errors of files."""

from msx_core.service_errors import BadRequest, PayloadTooLarge, ResourceNotFound, ServiceError

NO_FILES = "Files are not kept: jobs=true in the server's config.properties does it."


class UnknownFile(ResourceNotFound):
    def __init__(self, id: str) -> None:
        super().__init__(f"There is no file {id[:100]!r}: it has expired, was deleted, or another key uploaded it.")


class FileTooLarge(PayloadTooLarge):
    def __init__(self, most: int) -> None:
        super().__init__(f"The file is larger than {most} bytes (max_file_size): divide it.")


class FilesTakeTooMuch(PayloadTooLarge):
    """The files of one key have no room for more."""

    def __init__(self, most: int) -> None:
        super().__init__(f"All files of a key take at most {most} bytes (files_size): delete some, and send it again.")


class TooManyFiles(BadRequest):
    def __init__(self, most: int) -> None:
        super().__init__(f"A key has at most {most} files (max_files): delete some, and send it again.")


class FileInUse(ServiceError):
    """A batch that has not ended reads the file."""

    status, type, grpc_code = 409, "ConflictException", "ABORTED"

    def __init__(self, id: str, batch: str) -> None:
        super().__init__(f"The file {id} is the input of {batch}, which has not ended: cancel that before.")
