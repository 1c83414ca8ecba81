"""All files: who has which, how long they are kept, and how much room is left."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.files.errors import FileInUse, FilesTakeTooMuch, FileTooLarge, TooManyFiles, UnknownFile
from msx_frontend.files.records import KIND, StoredFile, stored
from msx_frontend.store.records import DAY, Bounds, Record, Records
from msx_frontend.store.store import Store

log = logging.getLogger("msx.files")

SWEEP_EVERY = 60.0
"""Seconds between two looks for files that have expired."""
UPLOADING = 3600.0
"""Seconds after which a file that nobody writes to is no upload any more."""
SPARE = 7 * DAY
"""Seconds that an input is kept behind the window of its batch: a server may be off for some days."""
UNBOUNDED = Bounds(1 << 40, 1 << 60, "max_files, files_size")
"""Bounds of the records: the shelf itself has those of files."""


class ShelfLimits(NamedTuple):
    """Bytes of one file, files and bytes of one key, days for which a file is kept."""

    largest: int
    most: int
    size: int
    days: float


class FileShelf:
    """Knows all files by memory, since a key has few; the store and the folder have them on the disk."""

    def __init__(self, store: Store, folder: Path, limits: ShelfLimits) -> None:
        self._store, self.folder, self.limits = store, folder, limits
        self._files: dict[str, StoredFile] = {}
        self._sizes: Counter[str] = Counter()
        """Bytes by owner: of files, and of what is being written."""
        self._counts: Counter[str] = Counter()
        self._readers: dict[str, set[str]] = {}
        """Batches that read a file, by the file's id."""
        self._leaving: set[str] = set()
        """Files that are being removed."""
        self._written: Callable[[], Iterable[str]] = tuple
        self._sweeper: asyncio.Task[None] | None = None
        self._sweeping = asyncio.Lock()
        """Held while a file is removed that has expired: a close waits for that."""

    async def begin(self, written: Callable[[], Iterable[str]]) -> None:
        """Read the records, and remove from now on what expires, and what a server left unfinished; `written`: ids of
        files that are being written, or go on with one of the batches."""
        self._written = written
        await self.look()
        await self._remove_unfinished()
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep(), name="sweep-files")

    async def look(self) -> None:
        """Know files that a server before this one has kept meanwhile, while its requests ended. Raises
        StoreUnavailable."""
        for record in await self._store.run(lambda records: records.every(KIND)):
            self._learn(record)

    async def close(self) -> None:
        if self._sweeper is not None:
            async with self._sweeping:
                self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)

    # -- what there is --

    def path(self, id: str) -> Path:
        return self.folder / id

    async def find(self, id: str, owner: str) -> StoredFile:
        """Raises UnknownFile, StoreUnavailable."""
        if id not in self._files:
            self._learn(await self._store.find(KIND, id, owner))
        found = self._files.get(id)
        if found is None or found.owner != owner or self._is_over(found):
            raise UnknownFile(id)
        return found

    def owner_of(self, id: str) -> str:
        """Raises UnknownFile."""
        if (found := self._files.get(id)) is None:
            raise UnknownFile(id)
        return found.owner

    def files(self, owner: str | None) -> list[StoredFile]:
        """Files of this owner, or of all, the oldest first."""
        return [one for one in self._files.values() if owner in (None, one.owner) and not self._is_over(one)]

    @property
    def count(self) -> int:
        """Files of all owners, with those that are being sent."""
        return self._counts.total()

    @property
    def size(self) -> int:
        """Bytes of all owners' files, with what is being written."""
        return self._sizes.total()

    # -- room --

    def room(self, owner: str) -> int:
        """Bytes that files of this owner may take beside what there is."""
        return self.limits.size - self._sizes[owner]

    def reserve(self, owner: str, size: int) -> None:
        """Count bytes that are written."""
        self._sizes[owner] += size

    def begin_upload(self, owner: str) -> None:
        """Raises TooManyFiles."""
        if self._counts[owner] >= self.limits.most:
            raise TooManyFiles(self.limits.most)
        self._counts[owner] += 1

    def end_upload(self, owner: str, size: int) -> None:
        """Count it no longer: it is kept, which counts it again, or gone."""
        self._counts[owner] -= 1
        self._sizes[owner] -= size

    def check(self, owner: str, size: int, more: int) -> None:
        """Raises FileTooLarge, FilesTakeTooMuch for a file of `size` bytes that grows by `more`."""
        if size + more > self.limits.largest:
            raise FileTooLarge(self.limits.largest)
        if more > self.room(owner):
            raise FilesTakeTooMuch(self.limits.size)

    # -- changes --

    async def keep(self, file: StoredFile) -> None:
        """Know a file that is whole in the folder. Raises StoreUnavailable."""
        await self._store.run(lambda records: add_file(records, file))
        self._know(file)

    def kept(self, files: Iterable[StoredFile]) -> None:
        """Know files whose records were written together with others."""
        for file in files:
            self._know(file)

    async def delete(self, id: str, owner: str) -> None:
        """Raises UnknownFile, FileInUse, StoreUnavailable."""
        file = await self.find(id, owner)
        if reader := self._readers.get(id):
            raise FileInUse(id, min(reader))
        await self._remove(file)

    def read_by(self, id: str, batch: str) -> None:
        """Keep the file as long as this batch reads it."""
        self._readers.setdefault(id, set()).add(batch)

    def read_no_more(self, id: str, batch: str) -> None:
        readers = self._readers.get(id, set())
        readers.discard(batch)
        if not readers:
            self._readers.pop(id, None)

    def keeps_until(self, id: str, end: float) -> Callable[[Records], object]:
        """Keep a file for longer, where need be, until some days behind `end`; returns what writes that."""
        file = self._files[id]
        expires = max(file.expires, end + SPARE)
        self._files[id] = file._replace(expires=expires)
        return lambda records: records.keep_until(KIND, id, expires)

    def expires_after(self, seconds: float | None, now: float) -> float:
        """The end of a file that is made now; `seconds` are those that its client asks for."""
        return now + min(seconds or float("inf"), self.limits.days * DAY)

    def _learn(self, record: Record | None) -> None:
        """Know the file of a record, which another server may have made."""
        if record is not None and record.id not in self._files:
            self._know(stored(record))

    def _know(self, file: StoredFile) -> None:
        self._files[file.id] = file
        self._counts[file.owner] += 1
        self._sizes[file.owner] += file.head.size

    def _is_over(self, file: StoredFile) -> bool:
        return file.id in self._leaving or (file.expires <= time.time() and file.id not in self._readers)

    async def _remove(self, file: StoredFile) -> None:
        """The record goes first: a file without one goes with the next start. Nobody finds it from now on."""
        self._leaving.add(file.id)
        try:
            await self._store.delete(KIND, file.id, file.owner)
        finally:
            self._leaving.discard(file.id)
        if self._files.pop(file.id, None) is not None:
            self._counts[file.owner] -= 1
            self._sizes[file.owner] -= file.head.size
        await asyncio.to_thread(self.path(file.id).unlink, missing_ok=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            for file in [one for one in self._files.values() if self._is_over(one)]:
                try:
                    async with self._sweeping:
                        await self._remove(file)
                except (ServiceUnavailable, OSError) as error:
                    log.error("the file %s, which has expired, is not removed: %s", file.id, error)
            try:
                async with self._sweeping:
                    await self._remove_unfinished()
            except OSError as error:
                log.error("files that are unfinished are not removed: %s", error)

    async def _remove_unfinished(self) -> None:
        known = {*self._files, *self._written()}
        await asyncio.to_thread(_remove_others, self.folder, known)


def add_file(records: Records, file: StoredFile) -> None:
    """Write the record of a file that is whole in the folder."""
    records.add(file.record(), {}, UNBOUNDED)


def _remove_others(folder: Path, known: set[str]) -> None:
    """Remove what was not written to for a while: younger ones may be uploads to a server that hands over to this one.
    Blocks."""
    if folder.is_dir():
        for path in folder.iterdir():
            with suppress(FileNotFoundError):  # an upload has failed just now
                if path.name not in known and path.stat().st_mtime < time.time() - UPLOADING:
                    path.unlink()
