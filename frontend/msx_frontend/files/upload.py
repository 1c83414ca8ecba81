"""One upload: its form is read as it comes, and its file written to the disk while it is counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from msx_core.service_errors import BadRequest
from msx_frontend.files.records import FileHead, Purpose, StoredFile, new_file_id
from msx_frontend.files.shelf import FileShelf
from msx_frontend.files.upload_form import UploadForm
from msx_frontend.files.written import WrittenFile
from msx_frontend.store.spare import check_spare

PIECE = 1 << 16
"""Bytes that are written at a time: as many wait in memory of each upload that goes on slowly."""
LONGEST_NAME = 255
PURPOSE: Purpose = "batch"
EXPIRES = "expires_after"


class Upload:
    def __init__(self, shelf: FileShelf, owner: str, content_type: bytes) -> None:
        """Raises BadRequest."""
        self._shelf, self._owner = shelf, owner
        self._form = UploadForm(content_type)
        self._size = 0

    async def read(self, pieces: AsyncIterator[bytes]) -> StoredFile:
        """Keep the file; where that fails nothing of it is left. Raises ServiceError, and what `pieces` raises."""
        id = new_file_id()
        path = self._shelf.path(id)
        self._shelf.begin_upload(self._owner)
        try:
            file = await asyncio.to_thread(WrittenFile, path)
            try:
                await self._write(pieces, file)
                await asyncio.to_thread(file.save)
            finally:
                file.close()
            kept = self._kept(id)
        except BaseException:
            self._shelf.end_upload(self._owner, self._size)
            await asyncio.shield(asyncio.to_thread(path.unlink, missing_ok=True))
            raise
        return await asyncio.shield(self._keep(kept))

    async def _keep(self, file: StoredFile) -> StoredFile:
        """Goes on to the end, also where the client leaves."""
        try:
            await self._shelf.keep(file)
        except BaseException:
            await asyncio.to_thread(self._shelf.path(file.id).unlink, missing_ok=True)
            raise
        finally:
            self._shelf.end_upload(self._owner, self._size)
        return file

    async def _write(self, pieces: AsyncIterator[bytes], file: WrittenFile) -> None:
        waiting = bytearray()
        async for piece in pieces:
            data = self._form.feed(piece)
            self._check_purpose()
            self._shelf.check(self._owner, self._size, len(data))
            self._shelf.reserve(self._owner, len(data))
            self._size += len(data)
            waiting += data
            if len(waiting) >= PIECE:
                await asyncio.to_thread(_append, file, bytes(waiting))
                waiting.clear()
        self._form.end()
        await asyncio.to_thread(_append, file, bytes(waiting))

    def _check_purpose(self) -> None:
        """Raises BadRequest, where the form has the purpose already."""
        purpose = self._form.fields.get("purpose", PURPOSE)
        if purpose != PURPOSE:
            raise BadRequest(f"purpose: {purpose[:40]!r} is not kept here; the server takes files for {PURPOSE!r}.")

    def _kept(self, id: str) -> StoredFile:
        """Raises BadRequest."""
        fields, now = self._form.fields, time.time()
        if "purpose" not in fields:
            raise BadRequest(f"purpose: needed; the server takes files for {PURPOSE!r}.")
        name = (self._form.filename or "")[:LONGEST_NAME]
        expires = self._shelf.expires_after(_seconds(fields), now)
        return StoredFile(id, self._owner, now, expires, FileHead(name, self._size, PURPOSE))


def _append(file: WrittenFile, data: bytes) -> None:
    """Blocks. Raises ServiceUnavailable."""
    check_spare(file.path, len(data))
    file.append(data)


def _seconds(fields: dict[str, str]) -> float | None:
    """Raises BadRequest."""
    anchor, text = fields.get(f"{EXPIRES}[anchor]"), fields.get(f"{EXPIRES}[seconds]")
    if anchor is None and text is None:
        return None
    if anchor != "created_at":
        raise BadRequest(f"{EXPIRES}[anchor]: expected created_at.")
    return checked_seconds(int(text) if text and text.isdecimal() and len(text) < 10 else 0)


LEAST_SECONDS, MOST_SECONDS = 3600, 2_592_000
"""OpenAI's bounds of `expires_after`."""


def checked_seconds(seconds: int) -> int:
    """Raises BadRequest."""
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise BadRequest(f"{EXPIRES}[seconds]: expected a number from {LEAST_SECONDS} to {MOST_SECONDS}.")
    return seconds
