"""The models of hubs on this machine: fetched once, kept in a cache of a bounded size, served as folders."""

import asyncio
import logging
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msx_archiver.errors import ArchiveError
from msx_archiver.room import why
from msx_archiver.sizes import human
from msx_archiver.uses import Uses
from msx_core.start_errors import StartError
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.download import Progress
from msx_frontend.archives.hub import cache
from msx_frontend.archives.hub.content import PASSABLE, HubContent, recorded
from msx_frontend.archives.hub.fetch_process import NotFetchedError, fetch, is_offline
from msx_frontend.archives.hub.hub_url import HubUrl
from msx_frontend.archives.model_folder import hub_folder
from msx_frontend.archives.schemes import HF
from msx_frontend.config import ServerConfig
from msx_frontend.management_errors import ArchiveNotFound, DownloadFailed, InvalidModel

log = logging.getLogger("msx.store")

TELL = 10.0
"""Seconds between two lines of the log about one model."""


class HubModels:
    """`folders`: for models' folders of links to what was fetched, which is in `hub_dir`."""

    def __init__(
        self,
        config: ServerConfig,
        root: Path,
        folders: Path,
        users: Sequence[Callable[[], Iterable[ArchiveUrl]]],
        env: Mapping[str, str],
    ) -> None:
        """Each of `users` returns the URLs of models or workflows that are served, or being unregistered."""
        self.root, self._folders, self._env = root, folders, env
        self._most, self._limit = config.max_download_size, float(config.download_timeout)
        self._kept = config.hub_cache_size
        self._offline = config.hub_offline
        self._signed = config.require_signature
        self._allowed = [pattern.pattern for pattern in config.allowed_urls]
        self._uses = Uses(root / "users.lock")
        self._contents: dict[str, HubContent] = {}
        """Contents by the URL that was asked for, and by that of the commit."""
        self._busy: list[HubContent] = []
        self._users = users

    @asynccontextmanager
    async def obtained(self, url: ArchiveUrl, progress: Progress, *, reuse: bool) -> AsyncIterator[tuple[Path, str]]:
        """The folder or archive of the model, and the URL that names what it is now.

        `reuse`: what was fetched before for the same URL will do. Raises ArchiveNotFound, DownloadFailed,
        InvalidModel.
        """
        wanted = hub_url(url)
        self._check_pinned(url, wanted)
        content, revision = await self._content(url, wanted, progress, reuse)
        named = wanted.at(revision, content.id)
        self._busy.append(content)
        try:
            await asyncio.to_thread(self._uses.hold, content.id)
            self._contents |= {url.text: content, named: content}
            yield await asyncio.to_thread(self._path, wanted, content), named
        finally:
            self._busy.remove(content)

    def made(self, path: Path) -> bool:
        """Whether this is the folder of a model of a hub, which was fetched by the rules of this server."""
        return any(path in (self._folder(content), content.model) for content in self._contents.values())

    async def settle(self, url: ArchiveUrl | None = None) -> None:
        """Give up the content of `url`, or all contents, unless users have them, and remove the oldest of the cache."""
        urls = [used.text for users in self._users for used in users()]
        used = {content.id for text in urls if (content := self._contents.get(text)) is not None}
        used |= {content.id for content in self._busy}
        asked = self._contents.values() if url is None else filter(None, [self._contents.get(url.text)])
        gone = {content.id: content for content in asked if content.id not in used}
        self._contents = {url: content for url, content in self._contents.items() if content.id not in gone}
        await asyncio.to_thread(self._release, gone.values())

    def _release(self, gone: Iterable[HubContent]) -> None:
        for content in gone:
            shutil.rmtree(self._folder(content), ignore_errors=True)
            content.used()
            self._uses.release(content.id)
        for removed in cache.shrink(self.root, self._kept, self._uses):
            log.info("removed from the cache of hub models (hub_cache_size): %s", removed)

    def clean_folders(self) -> None:
        """Remove models' folders of an earlier server that are not used, at the start. Blocks."""
        kept = {self._folder(content).name for content in self._contents.values()}
        for path in self._folders.glob("*"):
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def _check_pinned(self, url: ArchiveUrl, wanted: HubUrl) -> None:
        """Reject, under `require_signature`, all but an archive, whose signature is checked, and a commit."""
        if not self._signed or wanted.is_archive or (wanted.is_pinned and not wanted.prefix):
            return
        if wanted.prefix:
            what = "a folder of a bucket cannot be signed, and require_signature is on: pack it into an archive"
        else:
            what = (
                "require_signature is on, and its revision is not the hash of a commit (40 hex digits), so that what "
                f"it names may change: register {wanted.scheme}://{wanted.place}@<commit>"
            )
        raise DownloadFailed(url.shown, what)

    async def _content(
        self, url: ArchiveUrl, wanted: HubUrl, progress: Progress, reuse: bool
    ) -> tuple[HubContent, str]:
        offline = is_offline(wanted, self._offline, self._env)
        if reuse or offline or wanted.is_pinned:
            found = await asyncio.to_thread(recorded, self.root, wanted)
            if found is not None:
                return found
        try:
            return await self._asked(url, wanted, offline, progress)
        except NotFetchedError as error:
            raise DownloadFailed(url.shown, str(error)) from None
        except OSError as error:
            raise DownloadFailed(url.shown, f"{self.root}: {why(error, self.root)}") from None

    async def _asked(self, url: ArchiveUrl, wanted: HubUrl, offline: str, progress: Progress) -> tuple[HubContent, str]:
        """Listing of the model from its hub, or, offline, from what its library has on this machine."""
        if not offline:
            return await self._fetched(url, wanted, progress)
        missing = f"it is not in {self.root}, and {offline} forbids to ask the hub"
        if wanted.scheme != HF:
            raise NotFetchedError(missing)
        try:
            return await self._fetched(url, wanted, progress, offline=True)
        except NotFetchedError as error:
            raise NotFetchedError(f"{missing}; {error}") from None

    async def _fetched(
        self, url: ArchiveUrl, wanted: HubUrl, progress: Progress, *, offline: bool = False
    ) -> tuple[HubContent, str]:
        log.info("fetching %s", url.shown)
        await asyncio.to_thread(self.root.mkdir, mode=PASSABLE, parents=True, exist_ok=True)
        told, allowed = _Told(url, progress), self._allowed
        id, revision = await fetch(
            url.text, self.root, self._most, self._limit, told, self._env, allowed=allowed, offline=offline
        )
        return HubContent(self.root / wanted.folder, id, wanted.name), revision

    def _path(self, wanted: HubUrl, content: HubContent) -> Path:
        content.used()
        if wanted.is_archive:
            return content.model / wanted.prefix.rpartition("/")[2]
        try:
            return hub_folder(content.model, self._folder(content))
        except (StartError, ArchiveError) as error:
            raise InvalidModel(str(error)) from None
        except OSError as error:
            raise InvalidModel(f"{self._folders}: {why(error, self._folders)}") from None

    def _folder(self, content: HubContent) -> Path:
        return self._folders / f"{content.name}-{content.id[:32]}"


class _Told:
    """Hands progress on, and writes a line of the log now and then."""

    def __init__(self, url: ArchiveUrl, progress: Progress) -> None:
        self._url, self._progress = url, progress
        self._at = time.monotonic()

    def __call__(self, done: int, size: int) -> None:
        self._progress(done, size)
        if (now := time.monotonic()) - self._at > TELL:
            self._at = now
            log.info("fetching %s: %s of %s", self._url.shown, human(done), human(size))


def hub_url(url: ArchiveUrl) -> HubUrl:
    """Raises ArchiveNotFound for what is not the URL of a model."""
    try:
        return HubUrl.parse(url.text)
    except ValueError as error:
        raise ArchiveNotFound(f"{error}.") from None
