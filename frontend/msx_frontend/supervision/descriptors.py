"""Descriptors of the supervisor, which keeps three for each worker."""

import contextlib
import errno
import resource
from collections.abc import Sequence

MOST_RESERVED = 64
"""Descriptors that workers leave to frontends, listening sockets and commands; of few descriptors a quarter."""


def raise_limit() -> int:
    """Make the soft limit the hard one, where the system allows it. Returns what it was, which frontends have again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    set_limit(hard)
    return soft


def set_limit(soft: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def check_room(descriptors: Sequence[int]) -> None:
    """`descriptors` have come with a worker that is to start: the kernel gives the lowest numbers that are free. Raises
    OSError when too few are left."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and max(descriptors) >= limit - min(MOST_RESERVED, limit // 4):
        raise no_room()


def no_room() -> OSError:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    text = (
        f"the supervisor may have {limit} open files, and keeps three for each worker: raise the hard limit "
        "(`ulimit -Hn`, LimitNOFILE= of systemd, or --ulimit of the container), or serve with fewer workers"
    )
    return OSError(errno.EMFILE, text)
