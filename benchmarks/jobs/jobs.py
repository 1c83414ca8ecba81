"""Jobs: how fast they are accepted and ended, their bytes on the disk, and the p99 of live requests beside them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.jobs.backlog import Backlog
from benchmarks.load.result import Result
from benchmarks.load.wrk import Wrk, wrk, wrk_of
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.table import Report, Table
from benchmarks.servers.msx import Server, serve

QUICK = ("--rounds", "1", "--seconds", "1", "--places", "4")
BODY = 2048
CONNECTIONS = 8
ECHO = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 8\njobQueueSize: 1000\n"
FIXED = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 1\njobQueueSize: 1000\nloadSeconds: 0\nworkSeconds: 0.02\n"
"""A model that takes 20 ms a request."""
JOBS = "jobs=true\nmax_jobs=10000000\njobs_size=100000000000\n"
DEFERRED = {"Content-Type": "application/octet-stream", "Prefer": "respond-async"}


class Round(NamedTuple):
    accepted: Result
    ended: float
    """Jobs a second, from the first request to the end of the last job."""
    size: float
    """Bytes on the disk, a job."""


@benchmark("jobs")
@click.option("--rounds", default=5, type=click.IntRange(1), help="Of each measurement.")
@click.option(
    "--seconds", default=5.0, type=click.FloatRange(1), help="In which jobs are accepted, or live requests asked."
)
@click.option(
    "--places",
    default=(1, 16),
    multiple=True,
    type=click.IntRange(1),
    help="Values of jobs_at_once, beside live requests.",
)
def main(report: Report, rounds: int, seconds: float, places: Sequence[int]) -> None:
    """Jobs accepted and ended a second, their bytes on the disk, and live requests beside a backlog of them."""
    found = []
    for number in range(rounds):
        found.append(_flood(seconds))
        progress(f"jobs: round {number + 1} of {rounds}")
    tell_flood(report, found)
    beside = {at_once: [_beside(at_once, seconds) for _ in range(rounds)] for at_once in places}
    tell_beside(report, beside)
    report.notes.append(f"{rounds} rounds of {seconds:g} s each; bodies of {BODY} bytes, echoed; wrk")


def _flood(seconds: float) -> Round:
    with serve("echo", ECHO, properties=JOBS) as server, wrk_of(b"x" * BODY, DEFERRED) as load:
        began = time.monotonic()
        accepted = load.run(server.address, "/predictions/echo", connections=CONNECTIONS, seconds=seconds)
        backlog = Backlog(server)
        backlog.wait_until_empty()
        taken = time.monotonic() - began
        return Round(accepted, backlog.ended / taken, backlog.size / backlog.ended)


def _beside(at_once: int, seconds: float) -> tuple[int, int]:
    """p99 of live requests in µs: without jobs, and beside a backlog of them."""
    properties = f"{JOBS}jobs_at_once={at_once}\n"
    with serve("work", FIXED, properties=properties) as server, wrk(128) as live, wrk_of(b"x", DEFERRED) as load:
        _p99(live, server, 1.0)  # what the first requests bring
        without = _p99(live, server, seconds)
        load.run(server.address, "/predictions/work", connections=CONNECTIONS, seconds=seconds)
        beside = _p99(live, server, seconds)
        if Backlog(server).is_empty:
            raise click.ClickException("The jobs ended before the live requests: they were not beside them.")
        return without, beside


def _p99(live: Wrk, server: Server, seconds: float) -> int:
    return live.run(server.address, "/predictions/work", connections=1, seconds=seconds).p99


def tell_flood(report: Report, rounds: Sequence[Round]) -> None:
    columns = {
        "accepted a second": [one.accepted.per_second for one in rounds],
        "ms to accept, p50": [one.accepted.p50 / 1000 for one in rounds],
        "ms to accept, p99": [one.accepted.p99 / 1000 for one in rounds],
        "ended a second": [one.ended for one in rounds],
        "bytes on the disk a job": [one.size for one in rounds],
    }
    rows = [[name, figure(median(values)), spread(values)] for name, values in columns.items()]
    report.tables.append(Table("Jobs, accepted over 8 connections", ["what", "median", "lowest – highest"], rows))


def tell_beside(report: Report, found: dict[int, list[tuple[int, int]]]) -> None:
    rows = []
    for at_once, pairs in found.items():
        without, beside = [one for one, _ in pairs], [one for _, one in pairs]
        ratio, _, _ = paired_ratio(beside, without)
        rows.append([str(at_once), figure(median(without) / 1000), figure(median(beside) / 1000), f"{ratio:.2f}"])
    head = ["jobs_at_once", "p99 without jobs, ms", "p99 beside jobs, ms", "ratio"]
    report.tables.append(Table("Live requests to a model that takes 20 ms, one at a time", head, rows))
