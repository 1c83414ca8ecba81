"""A worker never outlives its frontend, nor does a pip."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel for a signal when the parent ends, then check that it had not ended before we asked.

    prctl(2). On systems without prctl the worker ends when its sockets are closed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os._exit(1)
