"""A core for the workers alone, as a device would be: everybody else keeps off it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def one_core_left() -> Iterator[None]:
    """This process, and all that it starts meanwhile, run on the others of its cores, if there are any."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores - {max(cores)} or cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
