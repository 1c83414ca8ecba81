"""Lines of the supervisor in the log of the server."""

import contextlib
import os
import sys

LOG_FILE = "MSX_LOG_FILE"
"""Variable with the file for the output of a server in the background."""


def say(text: str) -> None:
    """Write to stderr, where the frontends log."""
    follow_log()
    if sys.stderr is None:  # it was closed by whoever has started the server
        return
    with contextlib.suppress(OSError):  # a full disk
        sys.stderr.write(f"msx-serve: {text}\n")
        sys.stderr.flush()


def follow_log() -> None:
    """Write to the file that is the log now, and so let frontends that are started: the one before moves a large log
    aside. Nothing where there is no such file."""
    with contextlib.suppress(KeyError, OSError):
        fd = os.open(os.environ[LOG_FILE], os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        for stream in (1, 2):
            os.dup2(fd, stream)
        os.close(fd)
