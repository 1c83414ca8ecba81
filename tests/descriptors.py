"""Descriptors of the process of the tests."""

from __future__ import annotations

import gc
import os
from contextlib import suppress

OPEN = "/proc/self/fd"


def open_descriptors() -> set[tuple[str, str]]:
    """Return their numbers and what they are. Those that only garbage of earlier tests holds are closed first."""
    gc.collect()
    found = set()
    for number in os.listdir(OPEN):
        with suppress(OSError):  # that of the list itself, and those that a thread closes meanwhile
            found.add((number, os.readlink(f"{OPEN}/{number}")))
    return found
