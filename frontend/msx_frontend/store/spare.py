"""Room on a disk that new requests leave: what ends or deletes earlier ones is written, too."""

from __future__ import annotations

import os
from pathlib import Path

from msx_archiver.room import room
from msx_frontend.store.errors import StoreUnavailable

MOST, PART = 16 << 20, 0.05
"""Bytes that are left, and the part of a small disk."""


def check_spare(path: Path, size: int) -> None:
    """Look whether a file may grow by `size` bytes for a new request. Blocks. Raises StoreUnavailable."""
    disk = os.statvfs(path)
    spare = min(MOST, int(disk.f_blocks * disk.f_frsize * PART))
    if disk.f_bavail * disk.f_frsize - size < spare:
        raise StoreUnavailable(
            f"{path} takes no more requests: {room(path, size)}, of which {spare >> 10} KiB are kept for replies and "
            "deletions. Make room there."
        )
