"""Lines of the supervisor in the log of the server."""

import contextlib
import sys


def say(text: str) -> None:
    """Write to stderr, where the frontends log."""
    with contextlib.suppress(OSError):  # a full disk
        sys.stderr.write(f"msx-serve: {text}\n")
        sys.stderr.flush()
