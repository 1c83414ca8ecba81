"""Objects that are made many at a time, and are no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Make objects without a look at all of them for garbage, which holds up everything for tenths of a second: not
    meanwhile, and not afterwards. They go when nothing refers to them, as all do."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
