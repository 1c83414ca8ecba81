"""One file as the store knows it; its content lies in the folder `files`."""

from __future__ import annotations

import time
from typing import Literal, NamedTuple

import msgspec

from msx_core.request_ids import new_request_id
from msx_frontend.store.records import Record

KIND = "file"

Purpose = Literal["batch", "batch_output"]


class FileHead(msgspec.Struct, frozen=True):
    """`size` in bytes."""

    name: str
    size: int
    purpose: Purpose


class StoredFile(NamedTuple):
    """`created`, `expires`: seconds since the epoch."""

    id: str
    owner: str
    created: float
    expires: float
    head: FileHead

    def record(self) -> Record:
        head = msgspec.msgpack.encode(self.head)
        return Record(kind=KIND, id=self.id, owner=self.owner, created=self.created, expires=self.expires, head=head)


def new_file_id() -> str:
    return dated_id("file-")


def dated_id(prefix: str) -> str:
    """An id that begins with the second of its creation."""
    return f"{prefix}{int(time.time()):08x}{new_request_id().replace('-', '')}"


def stored(record: Record) -> StoredFile:
    return StoredFile(record.id, record.owner, record.created, record.expires, _decode(record.head))


_decode = msgspec.msgpack.Decoder(FileHead).decode
