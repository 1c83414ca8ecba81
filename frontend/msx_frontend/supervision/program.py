"""The program that a process runs: an installation that was overwritten in place is not the one that it has read."""

import os
import sys
from typing import NamedTuple

import msx_frontend


class Program(NamedTuple):
    """`stamp` changes with each installation at this place."""

    python: str
    version: str
    stamp: int


def program() -> Program:
    """Program of this process, as it lies on the disk now."""
    stamp = os.stat(msx_frontend.__file__).st_mtime_ns
    return Program(sys.executable, msx_frontend.__version__, stamp)


def is_overwritten(old: Program, new: Program) -> bool:
    """Whether what `old` has read at its place is gone: workers that go on import more of it later."""
    return old.python == new.python and old != new
