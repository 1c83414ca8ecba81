"""Large requests and responses: echo of megabytes, compared with mosec in the same run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import click
import msgspec

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.contests.contest import Contestant, at, rotated, table
from benchmarks.contests.echo import enter, mosec_echo, msx_echo, versions
from benchmarks.contests.verdicts import targets
from benchmarks.load.client import Address
from benchmarks.load.result import Result
from benchmarks.load.wrk import Wrk, wrk
from benchmarks.reports.figures import figure
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Report
from benchmarks.servers import trivial

QUICK = ("--rounds", "1", "--seconds", "1", "--warm-up", "1")
LEAST = {1: 1.2}
"""Size of a body in MB: the least ratio to mosec's rate."""
LIMIT = 1 << 30
"""Bytes: the limit of both servers."""
OURS = msx_echo(properties=f"max_request_size={LIMIT}\nmax_response_size={LIMIT}\n")
PEER = mosec_echo("", "--max-request-size", str(LIMIT))
PAUSE = 0.5
"""Seconds after each turn, in which a server finishes the requests that the load left behind."""


@benchmark("payload")
@click.option("--rounds", default=7, type=click.IntRange(1), help="Both servers take their turn in each round.")
@click.option("--seconds", default=3.0, type=click.FloatRange(1), help="Length of each turn; wrk takes whole seconds.")
@click.option("--warm-up", default=3.0, type=click.FloatRange(1), help="Seconds per server before the counted rounds.")
@click.option("--megabytes", multiple=True, default=(1, 16), type=click.IntRange(1), help="Of a body; repeatable.")
@click.option("--connections", "-c", default=8, type=click.IntRange(1))
@click.option("--peer/--no-peer", default=True, help="Compare with mosec.")
def main(
    report: Report,
    rounds: int,
    seconds: float,
    warm_up: float,
    megabytes: tuple[int, ...],
    connections: int,
    peer: bool,
) -> None:
    """Megabytes per second each way of an echo model: bodies of 1 and 16 MB, one worker each, load by wrk.

    Both servers run for the whole time and take turns; the ratio is the median of the rounds' ratios.
    """
    report.notes.append(
        f"Load: {connections} connections, {rounds} rounds of {seconds:g} s; MB are 10^6 bytes, each way"
    )
    report.notes += [versions(["mosec"])] if peer else []
    panels = {}
    for size in megabytes:
        with megabytes_of(size) as load, ExitStack() as stack:
            report.notes.append(_ceiling(load, connections, seconds))
            field = enter(stack, (OURS, PEER) if peer else (OURS,), size * 10**6, report)
            for contestant in field:
                contestant.warm_up(load, connections, warm_up)
            for number in range(rounds):
                _round(load, rotated(field, number), connections, seconds)
                progress(f"payload: {size} MB, round {number + 1} of {rounds}")
        what = f"{size} MB, {at(connections)}"
        report.tables.append(table(f"Echo of {what}", field, connections, [PEER.name], unit="MB"))
        panels[f"{size} MB"] = {one.name: one.rates(connections) for one in field}
        if size in LEAST:
            report.targets += targets(field, connections, [OURS.name], PEER.name, LEAST[size], what, unit="MB")
    report.plots.append(Bars("payload", f"Echo of large bodies, {at(connections)}", "MB/s each way", panels, CAPTION))


CAPTION = "The megabytes that each server takes, and gives back, in a second; longer is better."


@dataclass(frozen=True)
class Megabytes:
    """A load that counts megabytes instead of requests."""

    wrk: Wrk
    size: int

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        result = self.wrk.run(address, path, connections=connections, seconds=seconds)
        return msgspec.structs.replace(result, requests=result.requests * self.size)


@contextmanager
def megabytes_of(size: int) -> Iterator[Megabytes]:
    with wrk(size * 10**6) as load:
        yield Megabytes(load, size)


def _round(load: Megabytes, contestants: Sequence[Contestant], connections: int, seconds: float) -> None:
    for contestant in contestants:
        time.sleep(PAUSE)
        contestant.take(load, connections, seconds)


def _ceiling(load: Megabytes, connections: int, seconds: float) -> str:
    """The rate of the load against a server that only answers: no server can exceed it."""
    with trivial.serve(load.size * 10**6) as address:
        rate = load.run(address, "/", connections=connections, seconds=seconds).per_second
    server = f"a server that has its answer of {load.size} MB ready, and no worker"
    return f"Limit of the load, {load.wrk.version}, with {server}: {figure(rate)} MB/s"
