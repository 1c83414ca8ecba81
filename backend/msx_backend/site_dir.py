"""Packages that were installed for one model."""

import site
import sys


def prefer_packages(folder: str) -> None:
    """The packages in `folder` are found before the interpreter's own, except for those that the worker has imported
    already."""
    before = set(sys.path)
    site.addsitedir(folder)  # its .pth files count
    added = [path for path in sys.path if path not in before]
    sys.path[:] = [*added, *(path for path in sys.path if path in before)]
