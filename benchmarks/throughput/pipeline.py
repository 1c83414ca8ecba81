"""Three stages in processes of their own: an array is made, passed on and summed up, beside mosec in the same run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import click
import httpx

from benchmarks.cli.benchmark import benchmark
from benchmarks.contests.before import before_option, compare, name_before
from benchmarks.contests.contest import Contestant, at, ratio, rotated, table
from benchmarks.contests.rounds import play_round, settling_rounds
from benchmarks.contests.verdicts import costs_with_before, pairs_with_before
from benchmarks.load.wrk import Wrk, wrk_of
from benchmarks.peers import mosec
from benchmarks.peers.venv import NotInstalled
from benchmarks.reports.figures import median, paired_ratio
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import HANDLERS, serve_stages
from benchmarks.throughput.overlap import busy_share

QUICK = ("--rounds", "1", "--seconds", "1", "--warm-up", "1")
NAME = "msx"
BODY = 128
"""Bytes of a request, which says how large the array shall be."""
SIZES = {"128 B": 128, "1 MB": 10**6, "16 MB": 16 * 10**6}
"""Bytes of the array."""
LEAST = {"128 B": 1.5, "16 MB": 3.0}
"""The least ratio to mosec's rate at its best."""
BUSY = 0.95
"""The least share of its time in which the stage that waits has a full batch."""
STAGES = """\
jobQueueSize: 1000
stages:
  make: {handler: "pipeline.py:Make", workers: 1, device: none}
  pass: {handler: "pipeline.py:Pass", workers: 1, device: none}
  sum: {handler: "pipeline.py:Sum", workers: 1, device: none}
"""
PACKAGES = {"numpy": "1.26.4", "numbin": "0.5.1", "redis": "5.2.1"}
PROGRAM = """\
import sys

sys.path.append({!r})
from mosec_pipeline import serve

if __name__ == "__main__":
    serve({!r}, {!r})
"""
REDIS = "REDIS_URL"
"""The variable with the URL of a Redis server, where there is one."""
WAYS = {"pickle": "pickle", "numbin": "NumBinIPCMixin", "redis": "Redis"}
LONGER = {"16 MB": 4}
"""A factor of a turn's length, where a request takes a second: those that run at its end do not count."""


@benchmark("pipeline")
@click.option("--rounds", default=5, type=click.IntRange(1), help="All servers take their turn in each round.")
@click.option("--seconds", default=3.0, type=click.FloatRange(1), help="Length of each turn; wrk takes whole seconds.")
@click.option("--warm-up", default=2.0, type=click.FloatRange(1), help="Seconds per server before the counted rounds.")
@click.option("--connections", "-c", default=32, type=click.IntRange(1))
@click.option("--size", "sizes", multiple=True, default=tuple(SIZES), type=click.Choice([*SIZES]), help="Of the array.")
@click.option("--overlap/--no-overlap", default=True, help="Measure how busy a stage is kept by the one before.")
@click.option("--peer/--no-peer", default=True, help="Compare with mosec.")
@before_option
def main(
    report: Report,
    rounds: int,
    seconds: float,
    warm_up: float,
    connections: int,
    sizes: tuple[str, ...],
    overlap: bool,
    peer: bool,
    before: Path | None,
) -> None:
    """Requests per second of three stages, by the size of the array that goes from one to the next.

    One process a stage, batches of one. All servers run for the whole time and take turns; ratios are medians.
    """
    report.notes.append(f"Load: {at(connections)}, {rounds} rounds of {seconds:g} s, requests of {BODY} bytes")
    with ExitStack() as stack:
        field = [stack.enter_context(_ours())]
        peers = [*_peers(stack, report)] if peer else []
        field += peers + ([stack.enter_context(_ours(before))] if before else [])
        panels = {}
        for size in sizes:
            _contest(stack, field, size, connections, rounds, seconds, warm_up)
            title = f"Arrays of {size}, {at(connections)}"
            report.tables.append(table(title, field, connections, [one.name for one in peers]))
            report.targets += _targets([field[0], *peers], size, connections)
            pairs, costs = (find(field, [connections]) for find in (pairs_with_before, costs_with_before))
            compare(report, pairs, what=title, costs=costs)
            panels[size] = {one.name: one.rates(connections) for one in field}
            for one in field:
                one.turns.clear()
    report.plots.append(Bars("pipeline", f"Three stages, {at(connections)}", "requests/s", panels, CAPTION))
    if overlap:
        _overlap(report, seconds * 2)


CAPTION = "The requests that three stages answer in a second, by the array that is passed on; longer is better."


def _contest(
    stack: ExitStack,
    field: list[Contestant],
    size: str,
    connections: int,
    rounds: int,
    seconds: float,
    warm_up: float,
) -> None:
    load = stack.enter_context(array_of(SIZES[size]))
    for contestant in field:
        _check(contestant, SIZES[size])
        contestant.warm_up(load, connections, warm_up * LONGER.get(size, 1))
        _check(contestant, SIZES[size])
    pairs = partial(pairs_with_before, field, [connections])
    for number in settling_rounds(f"pipeline: {size}", rounds, pairs):
        play_round(lambda _: load, rotated(field, number), [connections], seconds * LONGER.get(size, 1))
        for contestant in field:
            _check(contestant, SIZES[size])


@contextmanager
def array_of(size: int) -> Iterator[Wrk]:
    with wrk_of(_body(size), {"Content-Type": "application/octet-stream"}, timeout=60) as load:
        yield load


def _body(size: int) -> bytes:
    return str(size).encode().ljust(BODY)


def _check(contestant: Contestant, size: int) -> None:
    """Also waits until it has worked off what the load left behind. Raises click.ClickException for a wrong sum."""
    reply = httpx.post(contestant.address.url + contestant.path, content=_body(size), timeout=60)
    expected = str(size // 8 * int.from_bytes(b"\7" * 8, "little") % 2**64)
    if reply.text != expected:
        raise click.ClickException(f"{contestant.name} answers {reply.status_code}, {reply.text[:200]}: not {expected}")


@contextmanager
def _ours(before: Path | None = None) -> Iterator[Contestant]:
    with serve_stages("pipeline", STAGES, before) as server:
        yield Contestant(
            NAME if before is None else name_before(NAME), server.address, "/predictions/pipeline", server.process.pid
        )


def _peers(stack: ExitStack, report: Report) -> Iterator[Contestant]:
    """Start the peers that can be had here; a note says why others cannot."""
    if REDIS not in os.environ:
        report.notes.append(f"mosec's Redis did not take part: {REDIS} names no server")
    ways = {way: name for way, name in WAYS.items() if way != "redis" or REDIS in os.environ}
    for way, name in ways.items():
        program = PROGRAM.format(str(HANDLERS), way, os.environ.get(REDIS, ""))
        packages = PACKAGES if way == "redis" else {one: PACKAGES[one] for one in PACKAGES if one != "redis"}
        try:
            served = mosec.serve(program, "--timeout", "60000", packages=packages)
            address, pid = stack.enter_context(served)
        except NotInstalled as missing:
            report.notes.append(f"No comparison: {missing}")
            return
        yield Contestant(f"mosec {mosec.VERSION}, {name}", address, mosec.PATH, pid)


def _targets(field: Sequence[Contestant], size: str, connections: int) -> list[Target]:
    """Targets beside the peer's best way for arrays of this size; none without a peer."""
    ours, *peers = field
    if size not in LEAST or not peers:
        return []
    best = max(peers, key=lambda one: median(one.rates(connections)))
    pair = ours.rates(connections), best.rates(connections)
    what = f"requests/s of {best.name}, arrays of {size}, {at(connections)}"
    return [Target(what, ratio(*pair), f"≥ {LEAST[size]:g}", paired_ratio(*pair)[0] >= LEAST[size])]


def _overlap(report: Report, seconds: float) -> None:
    share, calls = busy_share(seconds)
    row = [f"{share:.1%}", f"{calls:,}"]
    report.tables.append(
        Table("A stage that waits 20 ms a batch of 8, behind one that computes 2 ms an item", COLUMNS, [row])
    )
    report.targets.append(Target("busy with full batches", row[0], f"> {BUSY:.0%}", share > BUSY))


COLUMNS = ("busy with full batches", "batches")
