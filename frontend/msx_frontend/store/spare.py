"""Room on a disk that requests and replies leave: what ends or deletes earlier ones is written, too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from msx_archiver.room import room
from msx_frontend.store.errors import StoreUnavailable


class Spare(NamedTuple):
    """Bytes that are left, and the part of a small disk; `what` takes the rest, `kept` has these."""

    most: int
    part: float
    what: str
    kept: str


REQUESTS = Spare(16 << 20, 0.05, "requests", "replies and deletions")
REPLIES = Spare(8 << 20, 0.025, "replies", "deletions")


def check_spare(path: Path, size: int, spare: Spare = REQUESTS) -> None:
    """Look whether a file may grow by `size` bytes. Blocks. Raises StoreUnavailable."""
    disk = os.statvfs(path)
    kept = min(spare.most, int(disk.f_blocks * disk.f_frsize * spare.part))
    if disk.f_bavail * disk.f_frsize - size < kept:
        raise StoreUnavailable(
            f"{path} takes no more {spare.what}: {room(path, size)}, of which {kept >> 10} KiB are kept for "
            f"{spare.kept}. Make room there."
        )
