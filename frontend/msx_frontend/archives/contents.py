"""Contents of archives: unpacked once each, and removed when no version uses them any more."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from msx_archiver.cache import ArchiveCache, UnpackedArchive, UnpackedModel, UnpackedWorkflow
from msx_archiver.errors import ArchiveError
from msx_archiver.room import why
from msx_archiver.schema import M
from msx_frontend.archives.content_users import ContentUsers
from msx_frontend.config.state_folder import StateFolder, StateFolderError
from msx_frontend.management_errors import InvalidModel

log = logging.getLogger("msx.store")


class ArchiveContents:
    """Each content has a digest, and a count of the versions that use it."""

    def __init__(self, state: StateFolder, require: Callable[[Path, str], None] | None = None) -> None:
        """`require`: of `ArchiveCache`. Raises StateFolderError."""
        self._compiled = state.compiled
        self._cache = _cache(state, require)
        self._users = ContentUsers(self._remove)
        self._archives: dict[str, tuple[Path, Callable[[Path], UnpackedArchive[Any]]]] = {}
        """The archive of each digest, and the function that unpacks it."""

    async def unpack(self, path: Path) -> UnpackedModel:
        """Unpack an archive. Raises InvalidModel with the archiver's sentence: missing, damaged, hostile, or no
        space."""
        try:
            return await self._unpack(self._cache.unpack, path)
        except ArchiveError as error:
            raise InvalidModel(str(error)) from None

    async def unpack_workflow(self, path: Path) -> UnpackedWorkflow:
        """Unpack the archive of a workflow. Raises ArchiveError."""
        return await self._unpack(self._cache.unpack_workflow, path)

    async def _unpack(self, unpack: Callable[[Path], UnpackedArchive[M]], path: Path) -> UnpackedArchive[M]:
        unpacked = await self._users.unpack(partial(unpack, path))
        for warning in unpacked.warnings:
            log.warning("%s: %s", path.name, warning)
        if unpacked.path.parent == self._cache.root:
            self._archives[unpacked.digest] = path, unpack
        return unpacked

    async def intact(self, digest: str) -> None:
        """Call this before a worker starts: files that were changed or removed are unpacked again, with a warning.

        Folders that are used in place may change. Raises InvalidModel when the archive is missing.
        """
        if digest not in self._archives:
            return
        archive, unpack = self._archives[digest]
        await self._users.check(digest, partial(self._renew, archive, digest, unpack))

    def _renew(self, archive: Path, digest: str, unpack: Callable[[Path], UnpackedArchive[Any]]) -> None:
        with suppress(OSError):
            if self._cache.is_intact(digest):
                return
        try:
            again = unpack(archive)
        except ArchiveError as error:
            raise InvalidModel(
                f"The unpacked files of {archive.name} were changed or removed, and cannot be unpacked again: {error}"
            ) from None
        for warning in again.warnings:
            log.warning("%s: %s", archive.name, warning)
        if again.digest != digest:
            raise InvalidModel(
                f"The unpacked files of {archive.name} were changed or removed, and the archive has another content "
                "now: register it again."
            )

    @asynccontextmanager
    async def using(self, path: Path) -> AsyncIterator[UnpackedModel]:
        """Keep the archive unpacked for the length of the block, and for a registration that follows."""
        unpacked = await self.unpack(path)
        try:
            yield unpacked
        finally:
            self._users.keep(unpacked.digest)

    def share(self, digest: str) -> None:
        """Count one more version that uses this content, which is already in use."""
        self._users.share(digest)

    def in_use(self, digest: str) -> bool:
        return self._users.in_use(digest)

    async def release(self, digest: str) -> None:
        """Count one version less that uses this content. The digest of a version without an archive is ""."""
        if digest:
            await self._users.release(digest)

    def compile_cache(self, digest: str) -> Path:
        """The folder of compiled graphs of this content."""
        return self._compiled / digest

    async def clean(self) -> None:
        """Remove unfinished and unused folders of an earlier server, at the start."""
        await asyncio.to_thread(self._cache.clean, set(self._users.known))
        await asyncio.to_thread(self._clean_compiled)

    def _remove(self, digest: str) -> None:
        self._archives.pop(digest, None)
        self._cache.remove(digest)
        self._remove_compiled(digest)

    def _clean_compiled(self) -> None:
        if self._compiled.is_dir():
            for entry in self._compiled.iterdir():
                if entry.name not in self._users.known:
                    self._remove_compiled(entry.name)

    def _remove_compiled(self, digest: str) -> None:
        """Unless another server uses them. They are renamed first: what is left of them must not be taken for whole."""
        with self._cache.unused(digest) as unused, suppress(OSError):
            if unused:
                aside = self._compiled / f".tmp-{digest}"
                shutil.rmtree(aside, ignore_errors=True)
                self.compile_cache(digest).rename(aside)
                shutil.rmtree(aside, ignore_errors=True)


def _cache(state: StateFolder, require: Callable[[Path, str], None] | None) -> ArchiveCache:
    try:
        if state.shared is None:
            return ArchiveCache(state.models, require=require)
        return ArchiveCache(state.models, digests=state.digests, uses=state.uses(), require=require)
    except OSError as error:
        raise StateFolderError(f"{state.models} cannot be made: {why(error, state.path)}.") from None
