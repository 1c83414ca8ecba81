"""Where archives come from: `<model-store>`, and what was downloaded."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from msx_archiver.members import path_problem
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.contents import ArchiveContents
from msx_frontend.archives.download import Downloads
from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import StateFolder
from msx_frontend.management_errors import ArchiveNotFound, Conflict, DownloadFailed

log = logging.getLogger("msx.store")

ARCHIVE_SUFFIXES = (".mar", ".tar.gz", ".tgz", ".zip")


class FoundArchive(NamedTuple):
    """An archive or a folder, and the `modelUrl` of what is registered from it."""

    path: Path
    url: str


class ModelStore:
    """Resolves the `url` of a registration, downloads, and removes what no version was registered from any more."""

    def __init__(self, root: Path, state: StateFolder, downloads: Downloads | None = None) -> None:
        """Raises StateFolderError."""
        self.root = root
        self._state = state
        self._downloaded = root if state.is_beside_models else state.archives
        self._downloads = downloads or Downloads(ServerConfig(), state.downloads)
        self._fetching: set[Path] = set()
        self.contents = ArchiveContents(state)

    def beside(self, root: Path) -> ModelStore:
        """Another folder of archives, to locate and download them."""
        return ModelStore(root, self._state, self._downloads)

    def locate(self, url: ArchiveUrl) -> Path:
        """The archive or folder that `url` names, by its file name, in the model store (TorchServe's rule).

        An absolute path of a folder is taken as it is, where `allowed_urls` lets `file://` and it through; of what was
        downloaded, the file. Raises ArchiveNotFound, with TorchServe's texts.
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
        self, url: ArchiveUrl, *, signed: bool = False, replace: bool = False, reuse: bool = False
    ) -> AsyncIterator[FoundArchive]:
        """What `url` names, downloaded if it is elsewhere, and removed again if the block fails.

        A file of that name must not be there, unless to `replace` it or to `reuse` it. Raises ArchiveNotFound,
        DownloadFailed, or Conflict.
        """
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
            async with self._downloads.placed(url, path, signed=signed):
                self._fetching.discard(path)
                yield FoundArchive(path=path, url=url.text)
        finally:
            self._fetching.discard(path)

    async def forget(self, url: ArchiveUrl, others: Iterable[ArchiveUrl]) -> None:
        """Remove what was downloaded for a version that is gone, unless one of the `others` came from it too."""
        path = self._download_path(url)
        if path and all(other.file_name != path.name for other in others):
            await asyncio.to_thread(path.unlink, missing_ok=True)

    def _download_path(self, url: ArchiveUrl) -> Path | None:
        """Where it is put; None for what is not downloaded."""
        if not url.is_remote or self._folder(url):
            return None
        name = url.file_name
        if path_problem(name) or name.startswith("."):
            raise DownloadFailed(url.shown, "its path ends with no name of a file")
        return self._downloaded / name

    def _has(self, url: ArchiveUrl) -> bool:
        return any((folder / url.file_name).exists() for folder in (self._downloaded, self.root))

    def _is_ours(self, path: Path) -> bool:
        return path.parent.resolve() in (self.root, self._downloaded)

    def _folder(self, url: ArchiveUrl) -> Path | None:
        """A folder that is used where it is."""
        path = url.local_path
        if path is None or not path.is_absolute() or not path.is_dir():
            return None
        if not path.resolve().is_relative_to(self.root):
            self._downloads.check(ArchiveUrl.split(f"file://{path}"))
        return path

    def url_of(self, path: Path) -> str:
        """What a file or folder of this machine is registered as."""
        return path.name if self._is_ours(path) else str(path)

    def all_archives(self) -> list[Path]:
        """What `--models all` means: every archive, and every folder with a manifest."""
        return sorted(path for path in self.root.iterdir() if _is_archive(path))

    async def clean(self) -> None:
        """At the start: throw away what an earlier server left half-done or no longer needs."""
        await self.contents.clean()
        await asyncio.to_thread(self._downloads.clean)

    async def clean_downloads(self, urls: Iterable[ArchiveUrl]) -> None:
        """Throw away what an earlier server has downloaded beside its state, and is none of these."""
        if self._downloaded != self.root:
            await asyncio.to_thread(self._clean_downloaded, {url.file_name for url in urls})

    def _clean_downloaded(self, names: set[str]) -> None:
        for path in self._downloaded.glob("*"):
            if path.name not in names:
                path.unlink(missing_ok=True)


def _is_archive(path: Path) -> bool:
    if path.is_dir():
        return (path / "MAR-INF" / "MANIFEST.json").is_file()
    return path.name.endswith(ARCHIVE_SUFFIXES)
