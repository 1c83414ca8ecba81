"""Descriptors of the process of the tests, and of others."""

from __future__ import annotations

import gc
import os
from contextlib import suppress


def open_descriptors() -> set[tuple[str, str]]:
    """Return their numbers and what they are. Those that only garbage of earlier tests holds are closed first."""
    gc.collect()
    return descriptors_of(os.getpid())


def descriptors_of(pid: int) -> set[tuple[str, str]]:
    """Return numbers and what they are, but for those that are closed meanwhile: that of the list itself is one."""
    folder, found = f"/proc/{pid}/fd", set()
    for number in os.listdir(folder):
        with suppress(FileNotFoundError):
            found.add((number, os.readlink(f"{folder}/{number}")))
    return found
