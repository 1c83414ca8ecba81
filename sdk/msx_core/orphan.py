"""Ends a process together with the one that has started it."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Asks the kernel by prctl(2) for a signal when the parent ends, then checks that the parent had not ended before.

    On systems without prctl the worker ends when its sockets are closed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os._exit(1)
