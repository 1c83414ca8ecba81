"""Packages that were installed for one model."""

from __future__ import annotations

import site
import sys


def prefer_packages(folder: str) -> None:
    """Those of `folder` come before the interpreter's own, but not before what the worker itself has imported."""
    before = set(sys.path)
    site.addsitedir(folder)  # its .pth files count
    added = [path for path in sys.path if path not in before]
    sys.path[:] = [*added, *(path for path in sys.path if path in before)]
