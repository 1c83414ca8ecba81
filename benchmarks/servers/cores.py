"""Reserves a core for the workers, as a device would be: all other processes run on the other cores."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def one_core_left() -> Iterator[None]:
    """This process, and all processes that it starts meanwhile, run on its other cores, if there are any."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores - {max(cores)} or cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
