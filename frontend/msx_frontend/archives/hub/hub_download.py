"""Fetches the files of one model into a folder: resumed where it broke off, within limits, each file checked."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from msx_archiver.room import room
from msx_archiver.sizes import human
from msx_frontend.archives.hub.content import HubContent
from msx_frontend.archives.hub.digests import Digest, digest_of
from msx_frontend.archives.hub.remote import CHUNK, BrokenError, HubError, HubFile, Remote

ATTEMPTS = 5
"""Connections in a row that may bring nothing."""
PAUSES = (0.2, 1.0, 3.0, 5.0)
"""Seconds before the next one."""


class HubDownload:
    """Download of one content, by one process at a time."""

    def __init__(self, remote: Remote, content: HubContent) -> None:
        self._remote, self._content = remote, content
        self._done = 0

    @property
    def done(self) -> int:
        """Bytes that have come."""
        return self._done

    def fetch(self, most: int) -> None:
        """Fetch into `content.part`, which becomes `content.folder` at the end. Raises HubError, OSError.

        What has come stays in `part` when it fails: the next one goes on from there.
        """
        content = self._content
        if content.size > most:
            raise HubError(f"it has {content.size} bytes, more than max_download_size, {most} bytes")
        content.part.mkdir(parents=True, exist_ok=True)
        self._check_room()
        for file in content.files:
            self._file(file)
        content.complete()

    def _check_room(self) -> None:
        here = sum(path.stat().st_size for path in self._content.part.rglob("*") if path.is_file())
        needs = self._content.size - here
        if needs > shutil.disk_usage(self._content.part).free:
            raise HubError(f"it does not fit into {self._content.part.parent}: {room(self._content.part, needs)}")

    def _file(self, file: HubFile) -> None:
        path = self._content.part / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        detail = self._remote.detail(file)
        if path.exists() and path.stat().st_size <= file.size and self._completed(detail, path):
            return
        path.unlink(missing_ok=True)  # what was there was not a part of it
        if not self._completed(detail, path):
            path.unlink(missing_ok=True)
            raise HubError(f"{file.path} is damaged: its digest is not {detail.digest.partition(':')[2]}")

    def _completed(self, file: HubFile, path: Path) -> bool:
        """Whether it has the digest then; goes on with what is there."""
        digest, before = digest_of(file.digest, file.size), self._done
        with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644), "r+b") as to:
            for data in iter(lambda: to.read(CHUNK), b""):
                self._take(data, digest, file, before)
            for data in self._rest(file, before):
                to.write(data)
                self._take(data, digest, file, before)
            to.flush()
            os.fsync(to.fileno())
        if matches := digest.matches():
            self._content.date(path, file)
        else:
            self._done = before
        return matches

    def _take(self, data: bytes, digest: Digest, file: HubFile, before: int) -> None:
        digest.update(data)
        self._done += len(data)
        if self._done - before > file.size:
            raise HubError(f"{file.path} has more bytes than the {file.size} that the hub's listing says")

    def _rest(self, file: HubFile, before: int) -> Iterator[bytes]:
        """Missing bytes of a file, over as many connections as it needs."""
        failures = 0
        while self._done - before < file.size:
            start = self._done
            reason = "the connection ended early"
            try:
                with closing(self._remote.read(file, start - before)) as chunks:
                    yield from chunks
            except BrokenError as error:
                reason = str(error)
            failures = 0 if self._done > start else failures + 1
            if failures == ATTEMPTS:
                done = f"{human(self._done)} of {human(self._content.size)} have come, and stay for the next attempt"
                raise HubError(f"{file.path}: {reason}, {ATTEMPTS} times in a row; {done}")
            if self._done - before < file.size:
                time.sleep(PAUSES[min(failures, len(PAUSES) - 1)])


def patiently(ask: Callable[[], object]) -> object:
    """Call `ask`, again after each broken connection, and return its result. Raises HubError."""
    for attempt in range(ATTEMPTS):
        try:
            return ask()
        except BrokenError as error:
            if attempt == ATTEMPTS - 1:
                raise HubError(f"{error}, {ATTEMPTS} times in a row") from None
            time.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
    raise AssertionError
