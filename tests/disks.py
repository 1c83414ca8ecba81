"""Disks that are small enough to be filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """`folder` is a disk of `size` bytes (whole pages). Skips the test where that takes rights that it has not."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a disk of its own")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, *, leave: int = 0) -> None:
    """Until only `leave` bytes are left on its disk."""
    with (folder / "filler").open("wb", buffering=0) as file:
        left = os.statvfs(folder)
        file.write(bytes(left.f_bavail * left.f_frsize - leave))
