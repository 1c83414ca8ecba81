"""Where archives come from and where their content lies: `<model-store>` and its cache."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from msx_archiver.cache import ArchiveCache, Unpacked, UnpackedModel, UnpackedWorkflow
from msx_archiver.errors import ArchiveError
from msx_archiver.members import path_problem
from msx_archiver.room import why
from msx_archiver.schema import M
from msx_frontend.archives.archive_urls import check_url, file_name, is_remote, local_path, shown
from msx_frontend.archives.download import Downloads
from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import StateFolder, StateFolderError
from msx_frontend.errors import ArchiveNotFound, Conflict, DownloadFailed, InvalidModel

log = logging.getLogger("msx.store")

ARCHIVE_SUFFIXES = (".mar", ".tar.gz", ".tgz", ".zip")


class Found(NamedTuple):
    """An archive or a folder, and the `modelUrl` of what is registered from it."""

    path: Path
    url: str


class ModelStore:
    """Resolves the `url` of a registration, unpacks once per content, and frees what no version uses any more."""

    def __init__(self, root: Path, state: StateFolder, downloads: Downloads | None = None) -> None:
        """Raises StateFolderError."""
        self.root, self._state = root, state
        self._downloaded = root if state.is_beside_models else state.archives
        self._downloads = downloads or Downloads(ServerConfig(), state.downloads)
        self._fetching: set[Path] = set()
        self._compiled = state.compiled
        self._cache = _cache(state)
        self._users: Counter[str] = Counter()
        self._archives: dict[str, tuple[Path, Callable[[Path], Unpacked[Any]]]] = {}
        """By digest, of what is unpacked: from where, and how."""
        self._unpacking = 0
        self._removing = asyncio.Lock()

    def beside(self, root: Path) -> ModelStore:
        """Another folder of archives, to locate and download them."""
        return ModelStore(root, self._state, self._downloads)

    def locate(self, url: str) -> Path:
        """The archive or folder that `url` names, by its file name, in the model store (TorchServe's rule).

        An absolute path of a folder is taken as it is, where `allowed_urls` lets `file://` and it through; of what was
        downloaded, the file. Raises ArchiveNotFound, with TorchServe's texts.
        """
        check_url(url)
        if folder := self._folder(url):
            return folder
        folders = (self._downloaded, self.root) if is_remote(url) else (self.root, self._downloaded)
        paths = (folder / file_name(url) for folder in folders)
        path = next(filter(os.path.exists, paths), None)  # false also for a name that no file can have
        if path is None:
            raise ArchiveNotFound(f"Model not found at: {shown(url)} (model store: {self.root})")
        return path

    @asynccontextmanager
    async def obtained(
        self, url: str, *, signed: bool = False, replace: bool = False, reuse: bool = False
    ) -> AsyncIterator[Found]:
        """What `url` names, downloaded if it is elsewhere, and removed again if the block fails.

        A file of that name must not be there, unless to `replace` it or to `reuse` it. Raises ArchiveNotFound,
        DownloadFailed, or Conflict.
        """
        check_url(url)
        path = self._download_path(url)
        if path is None or (reuse and self._has(url)):
            path = self.locate(url)
            yield Found(path, url if is_remote(url) and self._is_ours(path) else self.url_of(path))
            return
        if path.is_dir() or (path.exists() and not replace) or path in self._fetching:
            raise Conflict(f"Model file already exists {path.name}")
        self._fetching.add(path)
        try:
            path.parent.mkdir(exist_ok=True)
            async with self._downloads.placed(url, path, signed=signed):
                self._fetching.discard(path)
                yield Found(path, url)
        finally:
            self._fetching.discard(path)

    async def forget(self, url: str, others: Iterable[str]) -> None:
        """Remove what was downloaded for a version that is gone, unless one of the `others` came from it too."""
        path = self._download_path(url)
        if path and all(file_name(other) != path.name for other in others):
            await asyncio.to_thread(path.unlink, missing_ok=True)

    def _download_path(self, url: str) -> Path | None:
        """Where it is put; None for what is not downloaded."""
        if not is_remote(url) or self._folder(url):
            return None
        name = file_name(url)
        if path_problem(name) or name.startswith("."):
            raise DownloadFailed(shown(url), "its path ends with no name of a file")
        return self._downloaded / name

    def _has(self, url: str) -> bool:
        return any((folder / file_name(url)).exists() for folder in (self._downloaded, self.root))

    def _is_ours(self, path: Path) -> bool:
        return path.parent.resolve() in (self.root, self._downloaded)

    def _folder(self, url: str) -> Path | None:
        """A folder that is used where it is."""
        path = local_path(url) if is_remote(url) else Path(url)
        if path is None or not path.is_absolute() or not path.is_dir():
            return None
        if not path.resolve().is_relative_to(self.root):
            self._downloads.check(f"file://{path}")
        return path

    def url_of(self, path: Path) -> str:
        """What a file or folder of this machine is registered as."""
        return path.name if self._is_ours(path) else str(path)

    def all_archives(self) -> list[Path]:
        """What `--models all` means: every archive, and every folder with a manifest."""
        return sorted(path for path in self.root.iterdir() if _is_archive(path))

    async def unpack(self, path: Path) -> UnpackedModel:
        """Raises InvalidModel with the archiver's sentence: missing, damaged, hostile, or no space."""
        try:
            return await self._unpack(self._cache.unpack, path)
        except ArchiveError as error:
            raise InvalidModel(str(error)) from None

    async def unpack_workflow(self, path: Path) -> UnpackedWorkflow:
        """The same; raises ArchiveError."""
        return await self._unpack(self._cache.unpack_workflow, path)

    async def _unpack(self, unpack: Callable[[Path], Unpacked[M]], path: Path) -> Unpacked[M]:
        async with self._removing:  # what is being removed must not be found
            self._unpacking += 1
        try:
            unpacked = await asyncio.to_thread(unpack, path)
        finally:
            self._unpacking -= 1
        for warning in unpacked.warnings:
            log.warning("%s: %s", path.name, warning)
        self._users[unpacked.digest] += 1
        if unpacked.path.parent == self._cache.root:
            self._archives[unpacked.digest] = path, unpack
        return unpacked

    async def intact(self, digest: str) -> None:
        """Before a worker starts: what was unpacked is as it was, or is unpacked again, with a warning.

        A folder that is used where it is may be changed. Raises InvalidModel where the archive is not there any more.
        """
        if digest not in self._archives:
            return
        archive, unpack = self._archives[digest]
        async with self._removing:
            self._unpacking += 1
        try:
            await asyncio.to_thread(self._renew, archive, digest, unpack)
        finally:
            self._unpacking -= 1

    def _renew(self, archive: Path, digest: str, unpack: Callable[[Path], Unpacked[Any]]) -> None:
        with suppress(OSError):
            if self._cache.is_intact(digest):
                return
        try:
            again = unpack(archive)
        except ArchiveError as error:
            raise InvalidModel(
                f"What was unpacked of {archive.name} was changed or removed, and it cannot be unpacked again: {error}"
            ) from None
        for warning in again.warnings:
            log.warning("%s: %s", archive.name, warning)
        if again.digest != digest:
            raise InvalidModel(
                f"What was unpacked of {archive.name} was changed or removed, and the file holds another content by "
                "now: register it again."
            )

    @asynccontextmanager
    async def using(self, path: Path) -> AsyncIterator[UnpackedModel]:
        """Unpacked for as long as the block lasts, and kept for who registers it next."""
        unpacked = await self.unpack(path)
        try:
            yield unpacked
        finally:
            self._users[unpacked.digest] -= 1

    def share(self, digest: str) -> None:
        """One version more uses this content, which is in use already."""
        self._users[digest] += 1

    def in_use(self, digest: str) -> bool:
        return self._users[digest] > 0

    async def release(self, digest: str) -> None:
        """One version less uses this content; "" is that of a version that was lost."""
        if not digest:
            return
        self._users[digest] -= 1
        if self._users[digest] > 0:
            return
        del self._users[digest]
        async with self._removing:
            if not self._unpacking and digest not in self._users:  # else somebody may have found it
                await asyncio.to_thread(self._remove, digest)

    def compile_cache(self, digest: str) -> Path:
        """Where graphs compiled from this content are kept."""
        return self._compiled / digest

    async def clean(self) -> None:
        """At start: throw away what an earlier server left half-done or no longer needs."""
        await asyncio.to_thread(self._cache.clean, set(self._users))
        await asyncio.to_thread(self._downloads.clean)
        await asyncio.to_thread(self._clean_compiled)

    async def clean_downloads(self, urls: Iterable[str]) -> None:
        """Throw away what an earlier server has downloaded beside its state, and is none of these."""
        if self._downloaded != self.root:
            await asyncio.to_thread(self._clean_downloaded, {file_name(url) for url in urls})

    def _clean_downloaded(self, names: set[str]) -> None:
        for path in self._downloaded.glob("*"):
            if path.name not in names:
                path.unlink(missing_ok=True)

    def _remove(self, digest: str) -> None:
        self._archives.pop(digest, None)
        self._cache.remove(digest)
        shutil.rmtree(self.compile_cache(digest), ignore_errors=True)

    def _clean_compiled(self) -> None:
        if self._compiled.is_dir():
            for entry in self._compiled.iterdir():
                if entry.name not in self._users:
                    shutil.rmtree(entry, ignore_errors=True)


def _cache(state: StateFolder) -> ArchiveCache:
    try:
        return ArchiveCache(state.models)
    except OSError as error:
        raise StateFolderError(f"{state.models} cannot be made: {why(error, state.path)}.") from None


def _is_archive(path: Path) -> bool:
    if path.is_dir():
        return (path / "MAR-INF" / "MANIFEST.json").is_file()
    return path.name.endswith(ARCHIVE_SUFFIXES)
