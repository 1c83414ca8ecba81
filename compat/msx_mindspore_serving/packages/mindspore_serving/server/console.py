"""Lines for whoever watches a start script."""

import sys
from typing import TextIO


def say(text: str) -> None:
    _write(sys.stdout, text)


def warn(text: str) -> None:
    _write(sys.stderr, text)


def _write(stream: TextIO | None, text: str) -> None:
    """A script may have no console."""
    if stream is not None:
        stream.write(f"Serving: {text}\n")
        stream.flush()
