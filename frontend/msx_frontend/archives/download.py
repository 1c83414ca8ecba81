"""Downloads archives: writes a temporary file, within limits, and renames it when it is complete."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import secrets
import shutil
import stat
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from msx_archiver.room import is_full, room, why
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.http_source import CHUNK, HttpSource
from msx_frontend.config import ServerConfig
from msx_frontend.management_errors import DownloadFailed

Progress = Callable[[int, int], None]
"""Called with the bytes that have come, and those that come in all, as far as that is known."""

log = logging.getLogger("msx.store")


class Downloads:
    """Fetches `http://`, `https://` and `file://` URLs that `allowed_urls` allows into files."""

    def __init__(self, config: ServerConfig, folder: Path, env: Mapping[str, str] = os.environ) -> None:
        """`folder` holds unfinished files; it is on the disk of the model store."""
        self._allowed: tuple[re.Pattern[str], ...] = config.allowed_urls
        self._most = config.max_download_size
        self._time = float(config.download_timeout)
        self._folder = folder
        self._http = HttpSource(self.check, env)

    def check(self, url: ArchiveUrl) -> None:
        """Raises ArchiveNotFound for a URL that is not allowed."""
        url.check_allowed(self._allowed)

    async def fetch(
        self, url: ArchiveUrl, target: Path, *, signed: bool = False, progress: Progress | None = None
    ) -> None:
        """Download the file to `target`. `signed`: sign the request by the AWS keys of the environment
        (`s3_sse_kms`).

        Raises ArchiveNotFound for a URL that is not allowed, else DownloadFailed; no file is left then.
        """
        self.check(url)
        part = self._folder / f"{secrets.token_hex(8)}.part"
        size = _SizeLimit(url, self._most, self._folder, progress)
        log.info("downloading %s", url.shown)
        try:
            await asyncio.wait_for(self._to_file(url, part, signed, size), self._time)
            await asyncio.to_thread(_put, part, target)
        except asyncio.TimeoutError:
            raise DownloadFailed(url.shown, f"it took longer than download_timeout, {self._time:g} s") from None
        except OSError as error:
            reason = why(error, target, size.known)
            raise DownloadFailed(url.shown, f"{self._folder}: {reason}" if is_full(error) else reason) from None
        finally:
            part.unlink(missing_ok=True)

    async def fetched(self, url: ArchiveUrl, path: Path, *, signed: bool, progress: Progress) -> Path:
        """The downloaded file, beside the place that it is to have; see `fetch`."""
        new = self._folder / f"{secrets.token_hex(8)}-{path.name}"
        await self.fetch(url, new, signed=signed, progress=progress)
        return new

    @asynccontextmanager
    async def placed(self, new: Path, path: Path) -> AsyncGenerator[None, None]:
        """Puts a file of `fetched` to `path`. When the block fails, the file that was there before is restored."""
        before = self._folder / f"{secrets.token_hex(8)}-{path.name}"
        if path.exists():
            path.rename(before)
        new.rename(path)
        try:
            yield
        except BaseException:
            path.unlink(missing_ok=True)
            if before.exists():
                before.rename(path)
            raise
        finally:
            before.unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove unfinished files of a killed server."""
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _to_file(self, url: ArchiveUrl, part: Path, signed: bool, size: _SizeLimit) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path, come = url.local_path, 0
        source = _read_file(path, size) if path else self._http.read(url, size.announced, signed=signed)
        with io.FileIO(part, "xb", opener=_private) as file:
            async with aclosing(source) as chunks:
                async for chunk in chunks:
                    come += len(chunk)
                    size.come(come)
                    await asyncio.to_thread(_write_all, file, chunk)


class _SizeLimit:
    """Checks the size of a download: the announced bytes, then the received ones. Raises DownloadFailed for too
    many."""

    def __init__(self, url: ArchiveUrl, most: int, folder: Path, progress: Progress | None = None) -> None:
        self._url = url
        self._most = most
        self._folder = folder
        self._progress = progress
        self.known = 0

    def announced(self, size: int) -> None:
        self._check(size)
        if size > shutil.disk_usage(self._folder).free:
            raise DownloadFailed(self._url.shown, f"it does not fit into {self._folder}: {room(self._folder, size)}")

    def come(self, size: int) -> None:
        self._check(size)
        if self._progress is not None:
            self._progress(size, self.known)

    def _check(self, size: int) -> None:
        self.known = max(size, self.known)
        if size > self._most:
            raise DownloadFailed(self._url.shown, f"it is larger than max_download_size, {self._most} bytes")


async def _read_file(path: Path, size: _SizeLimit) -> AsyncGenerator[bytes, None]:
    with await asyncio.to_thread(_open_file, path) as file:
        size.announced(os.fstat(file.fileno()).st_size)
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk


def _private(path: str, flags: int) -> int:
    """Readable by the server's user only, because the source may be private."""
    return os.open(path, flags, 0o600)


def _open_file(path: Path) -> io.FileIO:
    """Only regular files: reading a pipe or a device might never end."""
    file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "it is neither a file nor a folder", str(path))
    return file


def _write_all(file: io.FileIO, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[file.write(left) :]


def _put(part: Path, target: Path) -> None:
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)
