"""Shared memory that processes of a worker's session have named, and that nobody removes when all are killed.

Python's multiprocessing has a process that removes its own, the resource tracker (`end_sessions` lets it do so), but it
may be killed, too, and the collectives of engines have none.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from msx_frontend.supervision.session import processes_of

PROC, SHARED = Path("/proc"), Path("/dev/shm")  # noqa: S108
_NAMED = re.compile(r"(?:(?:psm_|sem\.mp-|nccl-)\w+|.+-cpushm_\d+)$")
"""Blocks of memory and semaphores, as multiprocessing, NVIDIA's collectives, and vLLM's on a CPU name them."""
_MAPPED = re.compile(r"(\d+) +/dev/shm/")
"""An inode in /proc/PID/maps: the process that makes a semaphore maps it before it has its name."""


def shared_files(session: int) -> set[Path]:
    """Files below /dev/shm that processes of the session map now, where it has several. Blocks for milliseconds."""
    pids = processes_of(session)
    mapped = {inode for pid in pids for inode in _mapped(pid)} if len(pids) > 1 else set()
    return {file for file, inode in _named() if inode in mapped} if mapped else set()


def noted(session: int, before: Iterable[Path]) -> set[Path]:
    """Files of `before` that are there still, and those that are shared now. Blocks for milliseconds."""
    return {file for file in before if file.exists()} | shared_files(session)


def remove(files: Iterable[Path]) -> None:
    """Remove those that are still there and belong to this user or to one whose files it may remove."""
    for file in files:
        with contextlib.suppress(OSError):
            file.unlink()


def _named() -> Iterator[tuple[Path, int]]:
    with contextlib.suppress(OSError), os.scandir(SHARED) as entries:
        yield from ((Path(entry.path), entry.inode()) for entry in entries if _NAMED.match(entry.name))


def _mapped(pid: int) -> Iterator[int]:
    try:
        lines = (PROC / str(pid) / "maps").read_text(errors="replace").splitlines()
    except OSError:  # it has ended, or is another user's
        return
    yield from (int(found[1]) for line in lines if (found := _MAPPED.search(line)))
