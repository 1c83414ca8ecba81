"""The archives of the model store, and those that were downloaded."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from msx_archiver.members import path_problem
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.contents import ArchiveContents
from msx_frontend.archives.download import Downloads
from msx_frontend.archives.fetches import Fetches
from msx_frontend.archives.hubs import Hubs
from msx_frontend.archives.signed import signed_by
from msx_frontend.archives.suffixes import ARCHIVE_SUFFIXES, stem
from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.management_errors import ArchiveNotFound, Conflict, DownloadFailed

log = logging.getLogger("msx.store")


class FoundArchive(NamedTuple):
    """An archive or a folder, and the `modelUrl` of a model that is registered from it."""

    path: Path
    url: str


class ArchiveFolder(NamedTuple):
    root: Path

    def all_archives(self) -> list[Path]:
        """The archives of `--models all`: all archives, and all folders with a manifest, that are not hidden."""
        return sorted(path for path in self.root.iterdir() if _is_archive(path))


class ModelStore:
    """Finds or downloads the archive of a URL, and removes downloads that no version uses any more."""

    def __init__(
        self,
        root: Path,
        state: StateFolder,
        downloads: Downloads | None = None,
        signatures: Path | None = None,
        hubs: Hubs | None = None,
    ) -> None:
        """`signatures`: the key ring by which every archive must be signed. Raises StateFolderError."""
        self.root = root
        self._state = state
        self._downloaded = root if state.is_beside_models else state.archives
        self._downloads = downloads or Downloads(ServerConfig(), state.downloads)
        self._fetching: set[Path] = set()
        self._signatures = signatures
        self._hubs = hubs or Hubs(ServerConfig(), state)
        self.fetches = Fetches()
        require = None if signatures is None else signed_by(signatures, root, self._hubs.made)
        self.contents = ArchiveContents(state, require)

    def beside(self, root: Path) -> ModelStore:
        """A store for another folder of archives, with the same contents."""
        return ModelStore(root, self._state, self._downloads, self._signatures, self._hubs)

    def used_by(self, users: Callable[[], Iterable[ArchiveUrl]]) -> None:
        """`users` returns the URLs of models or workflows that are served, or being unregistered."""
        self._hubs.users.append(users)

    def locate(self, url: ArchiveUrl) -> Path:
        """The archive or folder in the model store that has the file name of `url` (TorchServe's rule).

        An absolute path of a folder is used in place, if `allowed_urls` allows it as `file://`. Raises
        ArchiveNotFound, with TorchServe's texts.
        """
        if folder := self._folder(url):
            return folder
        folders = (self._downloaded, self.root) if url.is_remote else (self.root, self._downloaded)
        paths = (folder / url.file_name for folder in folders)
        path = next(filter(os.path.exists, paths), None)  # false also for a name that no file can have
        if path is None:
            raise ArchiveNotFound(f"Model not found at: {url.shown} (model store: {self.root})")
        return path

    @asynccontextmanager
    async def obtained(
        self, url: ArchiveUrl, *, signed: bool = False, replace: bool = False, reuse: bool = False, name: str = ""
    ) -> AsyncIterator[FoundArchive]:
        """The archive of `url`, which is downloaded if necessary; the download is removed if the block fails.

        What comes of a hub stays in its cache. `name`: of the model, by which others see how far it is.

        A file of the same name is a Conflict, unless it may be replaced (`replace`) or used (`reuse`). Raises
        ArchiveNotFound, DownloadFailed, Conflict.
        """
        if url.is_hub:
            async with self._of_hub(url, name, reuse) as found:
                yield found
            return
        path = self._download_path(url)
        if path is None or (reuse and self._has(url)):
            path = self.locate(url)
            yield FoundArchive(path=path, url=url.text if url.is_remote and self._is_ours(path) else self.url_of(path))
            return
        if path.is_dir() or (path.exists() and not replace) or path in self._fetching:
            raise Conflict(f"Model file already exists {path.name}")
        self._fetching.add(path)
        try:
            path.parent.mkdir(exist_ok=True)
            with self.fetches.of(name or stem(path), url.shown) as fetch:
                new = await self._downloads.fetched(url, path, signed=signed, progress=fetch.come)
            async with self._downloads.placed(new, path):
                self._fetching.discard(path)
                yield FoundArchive(path=path, url=url.text)
        finally:
            self._fetching.discard(path)

    @asynccontextmanager
    async def _of_hub(self, url: ArchiveUrl, name: str, reuse: bool) -> AsyncIterator[FoundArchive]:
        self._downloads.check(url)
        models = await self._hubs.load()
        try:
            async with AsyncExitStack() as until:
                with self.fetches.of(name or stem(Path(url.file_name)), url.shown) as fetch:
                    obtained = models.obtained(url, fetch.come, reuse=reuse)
                    path, named = await until.enter_async_context(obtained)
                yield FoundArchive(path=path, url=named)
        except BaseException:
            await asyncio.shield(self._hubs.settle(url))
            raise

    async def forget(self, url: ArchiveUrl, others: Iterable[ArchiveUrl]) -> None:
        """Remove the download of a version that was unregistered, unless one of the `others` was registered from the
        same file."""
        if url.is_hub:
            await self._hubs.settle(url)
            return
        path = self._download_path(url)
        if path and all(other.file_name != path.name for other in others):
            await asyncio.to_thread(path.unlink, missing_ok=True)

    def _download_path(self, url: ArchiveUrl) -> Path | None:
        """The path of the download; None for an archive that is not downloaded."""
        if not url.is_remote or self._folder(url):
            return None
        name = url.file_name
        if path_problem(name) or name.startswith("."):
            raise DownloadFailed(url.shown, "its path does not end with the name of a file")
        return self._downloaded / name

    def _has(self, url: ArchiveUrl) -> bool:
        return any((folder / url.file_name).exists() for folder in (self._downloaded, self.root))

    def _is_ours(self, path: Path) -> bool:
        return path.parent.resolve() in (self.root, self._downloaded)

    def _folder(self, url: ArchiveUrl) -> Path | None:
        """The folder that `url` names, which is used in place; None for other URLs."""
        path = url.local_path
        if path is None or not path.is_absolute() or not path.is_dir():
            return None
        if not path.resolve().is_relative_to(self.root):
            self._downloads.check(ArchiveUrl.split(f"file://{path}"))
        return path

    def url_of(self, path: Path) -> str:
        """The `modelUrl` of a file or folder of this machine."""
        return path.name if self._is_ours(path) else str(path)

    def all_archives(self) -> list[Path]:
        return ArchiveFolder(self.root).all_archives()

    async def clean(self) -> None:
        """Remove unfinished and unused files of an earlier server, at the start."""
        await self.contents.clean()
        await asyncio.to_thread(self._downloads.clean)
        await self._hubs.clean()

    async def clean_downloads(self, urls: Iterable[ArchiveUrl]) -> None:
        """Remove downloads of an earlier server beside its state, except those of these URLs."""
        if self._downloaded != self.root:
            await asyncio.to_thread(self._clean_downloaded, {url.file_name for url in urls})

    def _clean_downloaded(self, names: set[str]) -> None:
        for path in self._downloaded.glob("*"):
            if path.name not in names:
                path.unlink(missing_ok=True)


def _is_archive(path: Path) -> bool:
    """TorchServe's rule for hidden files: Macs, NFS and rsync leave `._m.mar`, `.nfs…` and `.m.mar.Xy12Z` beside
    archives. A folder that cannot be read (`lost+found`) is none either."""
    if path.name.startswith("."):
        return False
    if path.is_dir():
        return os.path.isfile(path / "MAR-INF" / "MANIFEST.json")
    return path.name.endswith(ARCHIVE_SUFFIXES)
