"""Share of a core that a server without requests takes: with nothing connected, and with many silent connections."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.contests.before import before_option
from benchmarks.contests.contest import Contestant
from benchmarks.contests.echo import asgi_echo, enter, mosec_echo, msx_echo
from benchmarks.load.silent import silent_connections
from benchmarks.load.streams import allow_files
from benchmarks.reports.figures import figure, median, spread
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Report, Table, Target

QUICK = ("--rounds", "1", "--seconds", "2", "--connections", "50")
MOST = 0.5
"""Percent of a core, of all processes of the server."""
OURS = msx_echo()
BODY = 128
PAUSE = 2.0
"""Seconds in which a server finishes what connecting left behind."""
CAPTION = "What a server that has nothing to do takes of a core; shorter is better."


@dataclass
class Quiet:
    """A server, and its shares of a core in percent, one a round, by the number of connections."""

    contestant: Contestant
    shares: dict[int, list[float]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.contestant.name


@benchmark("idle")
@click.option("--rounds", default=3, type=click.IntRange(1), help="Of both states.")
@click.option("--seconds", default=20.0, type=click.FloatRange(0.1), help="For which all servers are left alone.")
@click.option("--connections", default=1000, type=click.IntRange(1), help="To each server in the second state.")
@click.option("--peer/--no-peer", default=True, help="Beside mosec and a bare ASGI server.")
@before_option
def main(report: Report, rounds: int, seconds: float, connections: int, peer: bool, before: Path | None) -> None:
    """The share of a core of a server without requests, frontend and worker together.

    All servers are idle at the same time. A connection has had one request answered before it falls silent.
    """
    allow_files(4 * connections, "connections")
    entrants = [OURS, *([OURS.at(before)] if before is not None and OURS.at is not None else [])]
    entrants += [mosec_echo(), asgi_echo()] if peer else []
    with ExitStack() as stack:
        servers = [Quiet(one) for one in enter(stack, entrants, BODY, report)]
        for number in range(rounds):
            for count in (0, connections):
                leave_alone(servers, count, seconds)
            progress(f"idle: round {number + 1} of {rounds}")
    report.notes.append(f"{rounds} rounds of {seconds:g} s for each state")
    tell(report, servers, connections)


def leave_alone(servers: Sequence[Quiet], connections: int, seconds: float) -> None:
    """A round: measures all servers at once, with so many silent connections to each."""
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(silent_connections(server.contestant.address, connections))
        time.sleep(min(PAUSE, seconds))
        spent = [server.contestant.processor_seconds() for server in servers]
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        for server, before in zip(servers, spent, strict=True):
            share = 100 * (server.contestant.processor_seconds() - before) / took
            server.shares.setdefault(connections, []).append(share)


def tell(report: Report, servers: Sequence[Quiet], connections: int) -> None:
    states = {0: "nothing connected", connections: f"{connections:,} silent connections"}
    columns = ["server", *(it for state in states.values() for it in (f"{state}, % of a core", "lowest – highest"))]
    rows = [[one.name, *(it for count in states for it in _shown(one.shares[count]))] for one in servers]
    report.tables.append(Table("An idle server", columns, rows))
    panels = {state: {one.name: one.shares[count] for one in servers} for count, state in states.items()}
    report.plots.append(Bars("idle", "An idle server", "% of a core", panels, CAPTION))
    report.targets += [
        _target(one, count, state) for one in servers if one.name == OURS.name for count, state in states.items()
    ]


def _shown(shares: Sequence[float]) -> tuple[str, str]:
    return f"{median(shares):.2f}", spread([round(share, 2) for share in shares])


def _target(one: Quiet, count: int, state: str) -> Target:
    share = median(one.shares[count])
    return Target(f"{one.name}: percent of a core, {state}", figure(round(share, 2)), f"≤ {MOST:g}", share <= MOST)
