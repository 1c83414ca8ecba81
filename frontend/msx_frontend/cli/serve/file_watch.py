"""Which files of a path have changed since the last look."""

import asyncio
from pathlib import Path

EVERY = 0.3
"""Seconds between two looks. A change counts when the next look finds the same: editors write in steps."""

Seen = dict[str, tuple[int, int]]
"""Modification times in ns, and sizes, by path."""


class FileWatch:
    """Polls, which works on every file system, also of containers and volumes."""

    def __init__(self, folder: Path) -> None:
        """`folder`: of the links to the files."""
        self._seen = seen(folder)

    async def changed(self, folder: Path, source: Path) -> None:
        """Returns when a file behind a link, or what stands in the source's folder, has changed."""
        before = self._seen, _names(source)
        while True:
            await asyncio.sleep(EVERY)
            now = await asyncio.to_thread(lambda: (seen(folder), _names(source)))
            if now != before and now == await self._later(folder, source):
                self._seen = now[0]
                return

    async def _later(self, folder: Path, source: Path) -> tuple[Seen, frozenset[str]]:
        await asyncio.sleep(EVERY)
        return await asyncio.to_thread(lambda: (seen(folder), _names(source)))


def seen(folder: Path) -> Seen:
    """A file that is missing for a moment, while it is written anew, has no time."""
    found: Seen = {}
    for link in folder.rglob("*"):
        if link.is_symlink():
            try:
                stat = link.stat()
            except OSError:
                found[str(link)] = (0, -1)
            else:
                found[str(link)] = (stat.st_mtime_ns, stat.st_size)
    return found


def _names(source: Path) -> frozenset[str]:
    """Files of a folder that is served: new ones count as changes, too."""
    if not source.is_dir():
        return frozenset()
    hidden = (".", "__pycache__")
    return frozenset(
        str(one) for one in source.rglob("*") if not any(part.startswith(hidden) for part in one.parts[1:])
    )
