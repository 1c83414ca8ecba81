"""Compiled graphs on disk, for the next worker of the same model.

MindSpore 2.10 names them by the order of their compilation, and hardly checks what it finds. So what is compiled
differently has a folder of its own; one process at a time uses a folder; and what a load that did not end has left is
thrown away. A new folder begins with a copy of what another worker has compiled.
"""

import fcntl
import hashlib
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_AT_ONCE = 64
"""The most workers with the same model on one machine."""
LOADED = "loaded"
KEY = "key"
"""File in a folder of graphs, with what they depend on that was not known before the first one."""

log = logging.getLogger(__name__)


class _TakenFolder:
    """The folder of this process and its lock, as long as the process lives."""

    folder: Path | None = None
    lock: int | None = None
    compiling = False


def take_folder(base: Path, rank: int, *key: str) -> Path | None:
    """A folder for the graphs of this rank, which no other process uses; None if there are too many workers.

    A second call releases the folder of the first. It comes before any graph is compiled: from then on MindSpore stays
    with its folder.

    `key`: what, beside the model, the graphs depend on.
    """
    name = hashlib.blake2b("\0".join(key).encode(), digest_size=8).hexdigest()
    for number in range(MOST_AT_ONCE):
        folder = base / name / f"{number}-{rank}"
        folder.mkdir(parents=True, exist_ok=True)
        if (lock := _lock(folder / "lock")) is not None:
            _release()
            _TakenFolder.folder, _TakenFolder.lock = folder, lock
            return _cleaned(folder)
    log.warning("graphs are not kept: %d workers have the same model", MOST_AT_ONCE)
    return None


def settle(key: str) -> None:
    """Graphs that are compiled from now on depend on `key`, too: throw those of another one away."""
    if _TakenFolder.folder is None:
        return
    graphs = _TakenFolder.folder / "graphs"
    note = graphs / KEY
    if note.exists() and note.read_text() != key:
        shutil.rmtree(graphs)
        graphs.mkdir()
    note.write_text(key)


def loaded() -> None:
    """The model is loaded, so that its graphs are complete."""
    if _TakenFolder.folder is not None and not _TakenFolder.compiling:
        (_TakenFolder.folder / LOADED).touch()


@contextmanager
def compiling() -> Iterator[None]:
    """Hold the folder for incomplete while a graph is compiled: a process that ends meanwhile may leave half of it."""
    _TakenFolder.compiling = True
    if _TakenFolder.folder is not None:
        (_TakenFolder.folder / LOADED).unlink(missing_ok=True)
    yield
    _TakenFolder.compiling = False
    loaded()


def _release() -> None:
    if _TakenFolder.lock is not None:
        os.close(_TakenFolder.lock)
        _TakenFolder.folder = _TakenFolder.lock = None


def _lock(path: Path) -> int | None:
    """The open file that holds the lock, until the process ends."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _cleaned(folder: Path) -> Path:
    """The folder for graphs. Existing graphs are kept only if the last load ended well."""
    graphs = folder / "graphs"
    if not graphs.exists():  # a load that failed, perhaps by what it was given, begins with nothing
        rank = folder.name.partition("-")[2]
        any(_copied(other, graphs) for other in sorted(folder.parent.glob(f"*-{rank}")) if other != folder)
    elif not (folder / LOADED).exists():
        shutil.rmtree(graphs, ignore_errors=True)
    (folder / LOADED).unlink(missing_ok=True)
    graphs.mkdir(exist_ok=True)
    return graphs


def _copied(other: Path, graphs: Path) -> bool:
    """Whether the graphs of another worker, which may be running, were copied: not where it compiles one meanwhile."""
    try:
        before = _complete(other)
        if before is None:
            return False
        shutil.copytree(other / "graphs", graphs)
        if _complete(other) == before:
            return True
    except OSError:  # it has begun anew, the disk is full, or they are another user's
        pass
    shutil.rmtree(graphs, ignore_errors=True)
    return False


def _complete(folder: Path) -> dict[str, tuple[int, int, int]] | None:
    """Size, time and inode of its files; None unless all were there when its model was loaded."""
    files = [folder / LOADED, *(path for path in (folder / "graphs").rglob("*") if path.is_file())]
    found = {str(path): (one.st_size, one.st_mtime_ns, one.st_ino) for path in files for one in [path.stat()]}
    newest = max(modified for _, modified, _ in found.values())
    return found if len(files) > 1 and newest == found[str(files[0])][1] else None
