"""The program that a process runs: an installation that was overwritten in place is not the one that it has read."""

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

import msx_frontend


class Program(NamedTuple):
    """`stamp` changes with each installation at this place."""

    python: str
    version: str
    stamp: int


COMMANDS = ("msx-serve", "torchserve", "msx_frontend.cli.main")
"""One of them stands in the command line of each supervisor: it has become one, or names the command whose it is. The
second is a link to the first (`msx-serve link-names`)."""


def program() -> Program:
    """Program of this process, as it lies on the disk now."""
    stamp = os.stat(msx_frontend.__file__).st_mtime_ns
    return Program(sys.executable, msx_frontend.__version__, stamp)


def runs_supervisor(command: Sequence[str]) -> bool:
    """Whether this command line may be a supervisor's."""
    return any(name in word for word in command for name in COMMANDS)


def is_overwritten(old: Program, new: Program) -> bool:
    """Whether what `old` has read at its place is gone: workers that go on import more of it later."""
    return old.python == new.python and old != new
