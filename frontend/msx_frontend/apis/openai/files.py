"""OpenAI's `/v1/files`: the inputs of batches, and what batches have written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from msx_core.service_errors import ResourceNotFound
from msx_frontend.apis.openai import file_schemas as schemas
from msx_frontend.apis.openai.pages import QUERIES, PageSize, page_of
from msx_frontend.files.errors import NO_FILES, UnknownFile
from msx_frontend.files.records import StoredFile
from msx_frontend.files.shelf import FileShelf
from msx_frontend.files.upload import Upload
from msx_net.http.family import Reply, Route, UploadRoute
from msx_net.http.request import Request
from msx_net.keys import owner_of_key

PAGE = PageSize(10_000, 10_000)
PIECE = 1 << 18
"""Bytes of a file that are read at a time."""


def file_routes(shelf: FileShelf | None) -> Iterator[Route]:
    """`shelf` is None where the server keeps no files."""
    answers = FileAnswers(shelf)
    yield Route(
        "POST",
        "/v1/files",
        UploadRoute(answers.upload),
        summary="Upload the input of a batch: multipart/form-data with purpose=batch and file",
        response_schema=schemas.FileObject,
    )
    yield Route(
        "GET",
        "/v1/files",
        answers.list,
        summary="Files of a key",
        queries=(*QUERIES, ("purpose", "string")),
        response_schema=schemas.FileList,
    )
    yield Route("GET", "/v1/files/{id}", answers.show, summary="One file", response_schema=schemas.FileObject)
    yield Route(
        "DELETE", "/v1/files/{id}", answers.delete, summary="Delete a file", response_schema=schemas.DeletedFile
    )
    yield Route("GET", "/v1/files/{id}/content", answers.content, summary="The content of a file")


class FileAnswers:
    """Methods raise UnknownFile, and StoreUnavailable."""

    def __init__(self, shelf: FileShelf | None, *, of_all: bool = False) -> None:
        """`of_all`: for operators, who see the files of all keys."""
        self._shelf, self._of_all = shelf, of_all

    async def upload(self, request: Request, pieces: AsyncIterator[bytes]) -> Reply:
        upload = Upload(self._found, owner_of_key(request.call.key), request.call.header(b"content-type").encode())
        return _json(self._shown(await upload.read(pieces)))

    async def list(self, request: Request) -> Reply:
        purpose = request.query.get("purpose")
        found = self._found.files(None if self._of_all else owner_of_key(request.call.key))
        wanted = [one for one in found if purpose in (None, one.head.purpose)]
        return _json(page_of(wanted, request.query, PAGE, self._shown))

    async def show(self, request: Request) -> Reply:
        return _json(self._shown(await self._file(request)))

    async def delete(self, request: Request) -> Reply:
        id = request.names["id"]
        await self._found.delete(id, self._owner(request))
        return _json({"id": id, "object": "file", "deleted": True})

    async def content(self, request: Request) -> Reply:
        id = (await self._file(request)).id
        opened = await asyncio.to_thread(_open, self._found.path(id), id)
        request.when_over(opened.close)
        return Reply(_pieces(opened), headers=[("content-type", "application/octet-stream")])

    async def _file(self, request: Request) -> StoredFile:
        return await self._found.find(request.names["id"], self._owner(request))

    def _owner(self, request: Request) -> str:
        """Whose file is meant."""
        return self._found.owner_of(request.names["id"]) if self._of_all else owner_of_key(request.call.key)

    def _shown(self, file: StoredFile) -> dict[str, Any]:
        return {**_shown(file), "key": file.owner} if self._of_all else _shown(file)

    @property
    def _found(self) -> FileShelf:
        if self._shelf is None:
            raise ResourceNotFound(NO_FILES)
        return self._shelf


def _open(path: Path, id: str) -> BinaryIO:
    """Raises UnknownFile where it was deleted just now."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise UnknownFile(id) from None


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while data := await asyncio.to_thread(file.read, PIECE):
        yield data


def _shown(file: StoredFile) -> dict[str, Any]:
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.head.size,
        "created_at": int(file.created),
        "expires_at": int(file.expires),
        "filename": file.head.name,
        "purpose": file.head.purpose,
        "status": "processed",
        "status_details": None,
    }


def _json(value: dict[str, Any]) -> Reply:
    return Reply(msgspec.json.encode(value))
