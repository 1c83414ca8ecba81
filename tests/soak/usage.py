"""Usage of a server's resources."""

from __future__ import annotations

from typing import NamedTuple

import psutil

from tests.e2e.server import RunningServer
from tests.e2e.test_supervisor import frontends

MEMORY_RATIO, MEMORY_BYTES = 1.10, 16 << 20
"""By which the resident memory may grow: allocators keep what was in use at once."""


class Usage(NamedTuple):
    memory: int
    """Bytes, resident, of the frontend."""
    descriptors: int
    """Descriptors of the same, without one for each log file: those are opened by their first lines, and stay open."""
    supervisor: int
    """MiB, resident."""
    kept: int
    """Descriptors of the supervisor."""
    processes: int
    waiting: int
    """Jobs in queues."""

    @classmethod
    def of(cls, server: RunningServer) -> Usage:
        supervisor = psutil.Process(server.process.pid)
        (process,) = frontends(server)
        models = [model["modelName"] for model in server.management.get("/models").json()["models"]]
        queues = [server.describe(model)["jobQueueStatus"] for model in models]
        logs = {file.path for file in process.open_files() if file.path.endswith(".log")}
        # The two connections of this client are among the descriptors each time.
        return cls(
            memory=process.memory_info().rss,
            descriptors=process.num_fds() - len(logs),
            supervisor=supervisor.memory_info().rss >> 20,
            kept=supervisor.num_fds(),
            processes=len(supervisor.children(recursive=True)),
            waiting=sum(queue["pendingRequests"] for queue in queues),
        )

    def faults(self, before: Usage) -> list[str]:
        """In what it is more than before."""
        found = []
        if self.memory > before.memory * MEMORY_RATIO + MEMORY_BYTES:
            found.append(f"the server has {self.memory >> 20} MiB of memory, and had {before.memory >> 20}")
        if self.supervisor > before.supervisor + 1:
            found.append(f"the supervisor has {self.supervisor} MiB of memory, and had {before.supervisor}")
        for name in ("descriptors", "kept", "processes", "waiting"):
            now, then = getattr(self, name), getattr(before, name)
            if now > then:
                found.append(f"{name}: {now}, and it began with {then}")
        return found
