"""Whether a driver's process ids are those of the processes here: a driver names processes as the host does."""

import os
from pathlib import Path

NAMESPACE = Path("/proc/self/ns/pid")
_OF_HOST = "pid:[4026531836]"
"""The first namespace of process ids of a machine (PROC_PID_INIT_INO of Linux)."""


def is_of_host(namespace: Path = NAMESPACE) -> bool:
    """False in a container with process ids of its own, and where the kernel does not tell."""
    try:
        return os.readlink(namespace) == _OF_HOST
    except OSError:
        return False
