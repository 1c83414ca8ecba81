"""Replies of OpenAI's files and batches, for /openapi.json."""

from typing import Literal

from msgspec import Struct


class FileObject(Struct):
    """`bytes` is its size; times in seconds since the epoch."""

    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    expires_at: int
    filename: str
    purpose: Literal["batch", "batch_output"]
    status: Literal["processed"]
    status_details: str | None


class FileOfKey(FileObject):
    """A file as operators see it."""

    key: str


class FileList(Struct):
    object: Literal["list"]
    data: list[FileObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedFile(Struct):
    id: str
    object: Literal["file"]
    deleted: bool


class BatchFault(Struct):
    code: str
    message: str
    line: int | None
    param: str | None


class BatchFaults(Struct):
    object: Literal["list"]
    data: list[BatchFault]


class LineCounts(Struct):
    total: int
    completed: int
    failed: int


class BatchObject(Struct):
    """Times in seconds since the epoch."""

    id: str
    object: Literal["batch"]
    endpoint: str
    errors: BatchFaults | None
    input_file_id: str
    completion_window: str
    status: Literal[
        "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
    ]
    output_file_id: str | None
    error_file_id: str | None
    created_at: int
    in_progress_at: int | None
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    expires_at: int
    request_counts: LineCounts
    metadata: dict[str, str] | None


class BatchOfKey(BatchObject):
    """A batch as operators see it."""

    key: str


class BatchList(Struct):
    object: Literal["list"]
    data: list[BatchObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class BatchesOfKeys(Struct):
    object: Literal["list"]
    data: list[BatchOfKey]
    first_id: str | None
    last_id: str | None
    has_more: bool


class FilesOfKeys(Struct):
    object: Literal["list"]
    data: list[FileOfKey]
    first_id: str | None
    last_id: str | None
    has_more: bool
