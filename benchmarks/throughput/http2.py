"""Cost of a request over HTTP/2 on a REST port: 32 streams of one connection, beside 32 connections of HTTP/1.1."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from benchmarks.cli.benchmark import benchmark
from benchmarks.contests.before import before_option, compare, name_before
from benchmarks.contests.contest import Contestant, bars, rotated, table
from benchmarks.contests.rounds import play_round, settling_rounds
from benchmarks.contests.verdicts import costs_with_before, pairs_with_before, targets
from benchmarks.load.h2load import H2load, rest_load
from benchmarks.reports.table import Report
from benchmarks.servers.msx import serve

QUICK = ("--rounds", "2", "--seconds", "1", "--warm-up", "1")
TARGET = 0.9
"""Least share of the requests per second of HTTP/1.1."""
BATCHES = (1, 32)
VERSIONS = {"HTTP/2": 1, "HTTP/1.1": None}
"""The connections of HTTP/2; HTTP/1.1 has one for each request in flight."""
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: {}\njobQueueSize: 1000\n"
PATH = "/predictions/echo"


@benchmark("http2")
@click.option("--rounds", default=8, type=click.IntRange(1), help="Every setting takes its turn in each round.")
@click.option("--seconds", default=2.0, type=click.FloatRange(1), help="Length of each turn.")
@click.option("--warm-up", default=2.0, type=click.FloatRange(1), help="Seconds per setting before the counted rounds.")
@click.option("--in-flight", default=32, type=click.IntRange(1), help="Requests at a time.")
@click.option("--body", default=128, type=click.IntRange(1), help="Bytes.")
@before_option
def main(
    report: Report, rounds: int, seconds: float, warm_up: float, in_flight: int, body: int, before: Path | None
) -> None:
    """HTTP/2 beside HTTP/1.1 on the same REST port: echo, batchSize 1 and 32, one worker, load by h2load for both.

    All settings take turns in rounds; the ratio is the median of the rounds' ratios.
    """
    with ExitStack() as stack:
        loads = {name: stack.enter_context(rest_load(b"x" * body, count)) for name, count in VERSIONS.items()}
        field = [one for batch in BATCHES for one in _enter(stack, batch, None)]
        field += [one for batch in BATCHES for one in _enter(stack, batch, before)] if before is not None else []
        field = [one for one in field if _answers(one, loads[version(one.name)], report)]
        for one in field:
            one.warm_up(loads[version(one.name)], in_flight, warm_up)
        pairs = partial(pairs_with_before, field, [in_flight], load="request")
        for number in settling_rounds("http2", rounds, pairs):
            play_round(lambda one: loads[version(one.name)], rotated(field, number), [in_flight], seconds)
        used = next(iter(loads.values())).version
    report.notes.append(f"Load: {used}, 1 thread, {number + 1} rounds of {seconds:g} s, {body} bytes a request")
    tell(report, field, in_flight)


def tell(report: Report, field: Sequence[Contestant], in_flight: int) -> None:
    for batch in BATCHES:
        second, first = (setting(batch, version) for version in VERSIONS)
        rows = [one for one in field if one.name.startswith(setting(batch, ""))]
        report.tables.append(table(f"Echo, batch {batch}, {in_flight} in flight", rows, in_flight, [first]))
        report.targets += targets(field, in_flight, [second], first, TARGET, f"{in_flight} in flight")
    report.plots.append(bars("http2", "HTTP/2 and HTTP/1.1, echo", field, [in_flight]))
    rates, costs = (pairs(field, [in_flight], load="request") for pairs in (pairs_with_before, costs_with_before))
    compare(report, rates, what="Echo", costs=costs)


def setting(batch: int, version: str) -> str:
    return f"msx, batch {batch}, {version}"


def version(name: str) -> str:
    return next(version for version in VERSIONS if version in name)


def _enter(stack: ExitStack, batch: int, program: Path | None) -> list[Contestant]:
    """One server, which is asked in both ways."""
    server = stack.enter_context(serve("echo", CONFIG.format(batch), program=program))
    names = [setting(batch, version) for version in VERSIONS]
    names = names if program is None else [name_before(name) for name in names]
    return [Contestant(name, server.address, PATH, server.process.pid) for name in names]


def _answers(one: Contestant, load: H2load, report: Report) -> bool:
    """A version of MSX may speak HTTP/1.1 alone: it stays out, and a note says so."""
    try:
        load.run(one.address, one.path, connections=1, seconds=1)
    except click.ClickException:
        report.notes.append(f"No comparison: {one.name} does not answer.")
        return False
    return True
