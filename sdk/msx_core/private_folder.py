"""The temporary folder of a server that keeps nothing, as a start script's: models, unpacked files, its state."""

import fcntl
import os
import re
import shutil
import tempfile
import time

PREFIX, PATH_PREFIX = "msx-script-", "msx-serve-path-"
"""Beginnings of the names: of a start script's server, and of `msx-serve PATH`."""
_NAME = re.compile(rf"(?:{PREFIX}|{PATH_PREFIX})[a-z0-9_]{{8}}")
"""As mkdtemp makes it: what somebody else has named so is not ours."""
_YOUNG = 60.0
"""Seconds in which a folder may have been made and not be locked yet."""


class PrivateFolder:
    """Locked while the script or the server lives; those of scripts and servers that were both killed are removed."""

    def __init__(self, prefix: str = PREFIX) -> None:
        """`prefix` is one of the two. Raises OSError."""
        sweep(tempfile.gettempdir())
        self.path = tempfile.mkdtemp(prefix=prefix)
        self.descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        """The server inherits it, and the lock with it."""
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)

    def made(self, name: str) -> str:
        """A folder in it."""
        os.mkdir(path := os.path.join(self.path, name))
        return path

    def remove(self) -> None:
        """The server has ended."""
        self.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def close(self) -> None:
        os.close(self.descriptor)


def sweep(folder: str) -> None:
    """Remove what nobody has locked."""
    for path in left(folder):
        shutil.rmtree(path, ignore_errors=True)


def left(folder: str) -> list[str]:
    """This user's folders of killed servers: nobody has locked them."""
    return [entry.path for entry in os.scandir(folder) if _NAME.fullmatch(entry.name) and _is_left(entry)]


def _is_left(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
        if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _YOUNG:
            return False
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
