"""The memory of the server's own process, idle with one small model: without a cluster, and with one."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.reports.figures import figure
from benchmarks.reports.table import Table, Target
from benchmarks.servers.msx import serve

CONFIG = "minWorkers: 1\nmaxWorkers: 1\ndeviceType: cpu\n"
MORE = 5.0
"""Target: MB (10^6 bytes) that a cluster may add."""


@dataclass(frozen=True)
class Footprint:
    """MB of 10^6 bytes. `own` is what no other process shares."""

    resident: float
    own: float

    @classmethod
    def of_server(cls, cluster: str) -> Footprint:
        """`cluster`: its address; empty for a server without one."""
        with serve("echo", CONFIG, properties=f"cluster_address={cluster}\n" if cluster else "") as server:
            found = server.process.memory_full_info()
        return cls(found.rss / 1e6, found.uss / 1e6)


def footprint_table(found: dict[str, Footprint]) -> Table:
    rows = [(place, figure(one.resident), figure(one.own)) for place, one in found.items()]
    return Table("Memory of the server's process, idle with one echo model, MB", ("", "resident", "own"), rows)


def footprint_target(without: Footprint, within: Footprint) -> Target:
    more = within.resident - without.resident
    return Target("resident memory that a cluster adds to the server", f"{more:.1f} MB", f"≤ {MORE:g} MB", more <= MORE)
