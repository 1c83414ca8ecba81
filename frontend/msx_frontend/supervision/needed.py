"""Needs of a supervisor, besides those of every server."""

import os


def lacks() -> str:
    """Say what this system, or this Python, lacks; "" for nothing."""
    try:
        os.close(os.memfd_create("msx-supervisor"))  # in which it leaves its state to the next program
    except (AttributeError, OSError):
        return "lacks or forbids memfd_create(2), which Linux has since 3.17"
    try:
        os.close(os.pidfd_open(os.getpid()))  # by which the ends of workers are noticed, whose parent is another one
    except (AttributeError, OSError):
        return "lacks or forbids pidfd_open(2), which Linux has since 5.3"
    return ""
