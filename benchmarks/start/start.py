"""The time from `msx-serve --start` to the first answer, with a small and a large archive, and what the processes
weigh."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import psutil

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.contests.before import Pair, before_option, compare
from benchmarks.load.client import Address, Connection
from benchmarks.peers import torchserve
from benchmarks.peers.venv import NotInstalled
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.plot import Bars, Values
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, new_store, start, stop
from benchmarks.start.help import help_table, help_target, help_times
from benchmarks.start.large_archive import MB, OURS, PEER, large_archive, large_table
from benchmarks.start.starts import start_of_torchserve

QUICK = ("--runs", "1", "--requests", "100", "--archive-runs", "1", "--archive-size", "10")
PATH = "/predictions/echo"
FIRST_ANSWER, FRONTEND, WORKER = 1.5, 80.0, 45.0
"""Targets: s, MB, MB (10^6 bytes)."""
RATIO = 5.0
"""TorchServe takes at least so many times as long."""
HELPS = 20
"""Times that each command is asked for its help."""


@dataclass(frozen=True)
class Run:
    """Seconds and megabytes (10^6 bytes). `unique` is what no other process shares."""

    command: float
    first_answer: float
    stop: float
    frontend: float
    frontend_unique: float
    worker: float
    worker_unique: float


@benchmark("start")
@click.option("--runs", default=5, type=click.IntRange(1), help="Counted ones; one before them warms the disk cache.")
@click.option("--requests", default=1000, type=click.IntRange(1), help="Before memory is read.")
@click.option("--connections", default=32, type=click.IntRange(1), help="Connections of these requests.")
@click.option("--workers", default=1, type=click.IntRange(1))
@click.option("--tokens/--no-tokens", default=True, help="Token authorization, on by default as in the server.")
@click.option("--archive-size", default=1000, type=click.IntRange(1), help="MB (10^6 bytes) of the large archive.")
@click.option("--archive-runs", default=3, type=click.IntRange(0), help="With the large archive.")
@click.option("--peer/--no-peer", default=True, help="Compare with TorchServe.")
@before_option
def main(
    report: Report,
    runs: int,
    requests: int,
    connections: int,
    workers: int,
    tokens: bool,
    archive_size: int,
    archive_runs: int,
    peer: bool,
    before: Path | None,
) -> None:
    """Start a server with an echo model in a fresh store, ask it, weigh it, stop it; and with a large archive.

    TorchServe takes turns with it. Before all that, the commands are asked for their help.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the first run writes what pip leaves where it installs
    times = help_times(HELPS)
    measured, earlier, theirs = [], list[Run](), _Peer(report, wanted=peer)
    for number in range(runs + 1):
        measured.append(_run(requests, connections, workers, tokens=tokens))
        if before is not None:
            earlier.append(_run(requests, connections, workers, tokens=tokens, program=before))
        theirs.run()
        progress(f"start: {'warm-up' if number == 0 else f'run {number} of {runs}'}")
    counted = measured[1:]
    report.notes.append(f"Runs: {runs}, {workers} worker(s), memory after {requests:,} requests; MB are 10^6 bytes")
    report.tables += [help_table(times), _table(counted)]
    report.targets += [
        _target("start to first answer, s", [run.first_answer for run in counted], FIRST_ANSWER),
        _target("frontend resident, MB", [run.frontend for run in counted], FRONTEND),
        _target("echo worker resident, MB", [run.worker for run in counted], WORKER),
        help_target(times),
    ]
    compare(report, [], what="Start", costs=_pairs(counted, earlier[1:]) if earlier else ())
    panels: dict[str, dict[str, Values]] = {"echo": {OURS: [run.first_answer for run in counted]}}
    if theirs.seconds:
        panels["echo"][PEER] = theirs.seconds[1:]
        report.tables.append(_beside(panels["echo"]))
        report.targets.append(_ratio_target(panels["echo"]))
    if archive_runs:
        found = large_archive(archive_size * MB, archive_runs, peer=bool(theirs.seconds))
        report.tables.append(large_table(archive_size * MB, found))
        panels[f"an archive of {archive_size:,} MB"] = found.first_answers()
    report.plots.append(Bars("start", "From start to first answer", "s", panels, CAPTION))


CAPTION = "Seconds from the start of the server to the answer to its first request; shorter is better."


class _Peer:
    """TorchServe's starts with the same model, in s; none where it cannot be had."""

    def __init__(self, report: Report, *, wanted: bool) -> None:
        self.seconds: list[float] = []
        self._report, self._wanted = report, wanted

    def run(self) -> None:
        if not self._wanted:
            return
        try:
            with new_store(torchserve.MODEL, "minWorkers: 1\nmaxWorkers: 1\n") as store:
                self.seconds.append(start_of_torchserve(store, torchserve.MODEL).first_answer)
        except NotInstalled as missing:
            self._wanted = False
            self._report.notes.append(f"No comparison: {missing}")


def _beside(seconds: Mapping[str, Values]) -> Table:
    middle, low, high = paired_ratio(seconds[PEER], seconds[OURS])
    rows = [(name, figure(median(values)), spread(values)) for name, values in seconds.items()]
    rows.append(("TorchServe / msx", f"{middle:.2f}", f"{low:.2f} – {high:.2f}"))
    return Table("Start to first answer, s", ("server", "median", "lowest – highest"), rows)


def _pairs(now: Sequence[Run], before: Sequence[Run]) -> list[Pair]:
    figures = {
        "s to the first answer": [(run.first_answer, old.first_answer) for run, old in zip(now, before, strict=True)],
        "MB of the frontend": [(run.frontend, old.frontend) for run, old in zip(now, before, strict=True)],
    }
    return [Pair("echo", unit, [one for one, _ in both], [one for _, one in both]) for unit, both in figures.items()]


def _run(requests: int, connections: int, workers: int, *, tokens: bool, program: Path | None = None) -> Run:
    with new_store("echo", f"minWorkers: {workers}\nmaxWorkers: {workers}\n") as store:
        began = time.monotonic()
        server = start(store, "echo", tokens=tokens, program=program)
        try:
            returned = time.monotonic()
            asyncio.run(_first_answer(server.address))
            answered = time.monotonic()
            asyncio.run(_send(server.address, requests, connections))
            weights = _weigh(server)
        finally:
            stopping = time.monotonic()
            stop(server)
        return Run(returned - began, answered - began, time.monotonic() - stopping, *weights)


def _weigh(server: Server) -> tuple[float, float, float, float]:
    """The frontend and the heaviest worker, resident and unique each."""
    frontend = _megabytes(server.process)
    workers = [_megabytes(process) for process in server.workers()]
    return (*frontend, *max(workers))


def _megabytes(process: psutil.Process) -> tuple[float, float]:
    memory = process.memory_full_info()
    return memory.rss / 1e6, memory.uss / 1e6


async def _first_answer(address: Address) -> None:
    """A client that asks again while the model is loading; the server lets such requests wait."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        connection = await Connection.open(address)
        answer = await connection.post(PATH, b"first")
        connection.leave()
        if answer == (200, b"first"):
            return
        await asyncio.sleep(0.005)
    raise click.ClickException(f"No answer within 30 s; the last was {answer.status} {answer.body[:300]!r}")


async def _send(address: Address, requests: int, connections: int) -> None:
    shares = [requests // connections + (number < requests % connections) for number in range(connections)]
    await asyncio.gather(*(_one_connection(address, share) for share in shares))


async def _one_connection(address: Address, requests: int) -> None:
    connection = await Connection.open(address)
    for _ in range(requests):
        answer = await connection.post(PATH, b"x" * 128)
        if answer.status != 200:
            raise click.ClickException(f"A request failed: {answer.status} {answer.body[:300]!r}")
    connection.leave()


def _table(runs: Sequence[Run]) -> Table:
    columns = {
        "msx-serve --start returns, s": [run.command for run in runs],
        "first answer, s": [run.first_answer for run in runs],
        "msx-serve --stop returns, s": [run.stop for run in runs],
        "frontend resident, MB": [run.frontend for run in runs],
        "… of which its own": [run.frontend_unique for run in runs],
        "echo worker resident, MB": [run.worker for run in runs],
        "… of which its own ": [run.worker_unique for run in runs],
    }
    rows = [(what.strip(), figure(median(values)), spread(values)) for what, values in columns.items()]
    return Table("Start, stop and memory", ("what", "median", "lowest – highest"), rows)


def _ratio_target(seconds: Mapping[str, Values]) -> Target:
    middle = paired_ratio(seconds[PEER], seconds[OURS])[0]
    return Target("start to first answer, TorchServe / msx", f"{middle:.2f}", f"≥ {RATIO:g}", middle >= RATIO)


def _target(what: str, values: Sequence[float], limit: float) -> Target:
    middle = median(values)
    return Target(what, figure(middle), f"< {limit:g}", middle < limit)
