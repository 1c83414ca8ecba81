"""The state of an adapter's files, which others may write while a model uses them."""

import stat
from pathlib import Path

from msx_core.errors import HandlerLoadError


def file_stamp(name: str, path: Path) -> str:
    """Differs when the file of the adapter `name` was written, or replaced. Raises HandlerLoadError for a file that is
    missing, or is not a regular one."""
    try:
        found = path.stat()
    except OSError as error:
        raise HandlerLoadError(f"adapter {name}: {path.name} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise HandlerLoadError(f"adapter {name}: {path.name} is not a regular file")
    return f"{found.st_size:x}.{found.st_mtime_ns:x}.{found.st_ino:x}"
