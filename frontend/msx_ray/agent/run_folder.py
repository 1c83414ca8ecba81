"""The folder in which the ranks of a generation run on this node. It is locked while its agent lives."""

import contextlib
import fcntl
import os
import secrets
import shutil
from pathlib import Path

from msx_ray.agent.node_cache import node_cache


class RunFolder:
    """Where the ranks of one generation have their working folders. Raises OSError."""

    def __init__(self, name: str) -> None:
        while True:
            self.path = _parent() / f"{name}-{secrets.token_hex(3)}"
            self.path.mkdir(parents=True)
            self._fd = _locked(self.path)
            if self._fd is not None:
                return  # else somebody has taken it for one that was left

    def remove(self) -> None:
        """Idempotent."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def remove_deserted() -> None:
    """Remove the folders of agents that were killed."""
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(_parent()):
            if (fd := _locked(Path(entry.path))) is not None:
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(fd)


def _locked(folder: Path) -> int | None:
    """None when another one has locked it, or removed it."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.stat(folder)):
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def _parent() -> Path:
    return node_cache() / "run"
