"""The descriptors of this process: how many there may be, and how many of them connections may take."""

from __future__ import annotations

import resource
from dataclasses import dataclass

LEAST_RESERVE, MOST_RESERVE = 128, 1024
RESERVE_SHARE = 16
LEAST_DESCRIPTORS = 40
"""A server without models has some 30 open; with fewer than this it could not answer a connection on each listener."""
HOW_TO_RAISE = "`ulimit -Hn`, LimitNOFILE= of systemd, or --ulimit of the container"
MOST_CONNECTIONS = 1 << 16
"""Where `max_connections` does not say: they take memory, too, about a GB then."""


@dataclass(frozen=True)
class Descriptors:
    """`limit`: numbers of descriptors are below it."""

    limit: int

    @classmethod
    def of_process(cls) -> Descriptors:
        return cls(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    @property
    def reserve(self) -> int:
        """Descriptors for workers, archives, logs and the state: a sixteenth of all, at least 128 and at most 1024; of
        few descriptors the half."""
        return min(self.limit // 2, max(LEAST_RESERVE, min(MOST_RESERVE, self.limit // RESERVE_SHARE)))

    @property
    def for_segments(self) -> int:
        """How many of the reserve shared memory between stages may take: a quarter."""
        return self.reserve // 4

    @property
    def for_agents(self) -> int:
        """How many of the reserve silent connections to a cluster's ports for agents may take: a quarter."""
        return self.reserve // 4

    @property
    def for_connections(self) -> int:
        return self.limit - self.reserve

    @property
    def most_used(self) -> int:
        """Number in use, by whatever, at which there are no more connections: half of the reserve is for what has to be
        opened next, such as the sockets and pipes of a worker that starts."""
        return self.limit - self.reserve // 2


class RaisedLimit:
    """The soft limit of descriptors is the hard one until it is closed. `inherited` is the soft one from before, which
    workers get."""

    def __init__(self) -> None:
        self.inherited, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._set(hard, hard)

    def close(self) -> None:
        self._set(self.inherited, resource.getrlimit(resource.RLIMIT_NOFILE)[1])

    def _set(self, soft: int, hard: int) -> None:
        """A system that refuses leaves it as it is."""
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):
            return
