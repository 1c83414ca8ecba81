"""Costs of open consoles: the frontend's memory, and the p99 of predictions, with ten of them and with none."""

from __future__ import annotations

from collections.abc import Sequence

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.load.consoles import consoles
from benchmarks.load.wrk import Wrk, wrk
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, serve

QUICK = ("--rounds", "1", "--seconds", "1", "--consoles", "2")
MOST_MEMORY, MOST_RATIO = 5.0, 1.05
"""MB, and of the p99 without a console."""
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 1\njobQueueSize: 1000\n"
BODY = 128
CONNECTIONS = 4


@benchmark("console")
@click.option("--rounds", default=9, type=click.IntRange(1), help="With consoles, and as many without.")
@click.option("--seconds", default=5.0, type=click.FloatRange(1), help="Of each round.")
@click.option("--consoles", "count", default=10, type=click.IntRange(1), help="That are open at once.")
def main(report: Report, rounds: int, seconds: float, count: int) -> None:
    """The frontend's memory and the p99 of predictions with open consoles, beside none in the same run."""
    without, beside, memory = list[int](), list[int](), list[float]()
    with serve("echo", CONFIG) as server, wrk(BODY) as load:
        _p99(load, server, seconds)  # what the first requests bring
        before = _memory(server)
        for number in range(rounds):
            without.append(_p99(load, server, seconds))
            with consoles(server.management, count):
                beside.append(_p99(load, server, seconds))
                memory.append(_memory(server))
            progress(f"console: round {number + 1} of {rounds}")
    report.notes.append(f"{rounds} rounds of {seconds:g} s each, {CONNECTIONS} connections, {BODY} bytes; wrk")
    tell(report, count, without, beside, max(memory) - before)


def tell(report: Report, count: int, without: Sequence[int], beside: Sequence[int], growth: float) -> None:
    """Times in µs, `growth` in MB."""
    rows = [
        [name, figure(median(times) / 1000), spread([one / 1000 for one in times])]
        for name, times in (("none", without), (str(count), beside))
    ]
    report.tables.append(Table("Predictions beside open consoles", ["consoles", "p99, ms", "lowest – highest"], rows))
    ratio, _, _ = paired_ratio(beside, without)
    report.targets += [
        Target(
            f"frontend with {count} consoles: more memory, MB",
            figure(round(growth, 2)),
            f"≤ {MOST_MEMORY:g}",
            growth <= MOST_MEMORY,
        ),
        Target(
            f"p99 with {count} consoles: of that with none",
            f"{ratio:.3f}",
            f"≤ {MOST_RATIO:g}",
            ratio <= MOST_RATIO,
        ),
    ]


def _p99(load: Wrk, server: Server, seconds: float) -> int:
    return load.run(server.address, "/predictions/echo", connections=CONNECTIONS, seconds=seconds).p99


def _memory(server: Server) -> float:
    """Resident MB of the frontend."""
    return float(server.process.memory_info().rss) / 1e6
