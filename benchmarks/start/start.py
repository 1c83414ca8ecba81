"""The time from `msx-serve --start` to the first answer, with a small and a large archive, and what the processes
weigh."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.contests.before import Pair, before_option, compare
from benchmarks.contests.contest import rotated
from benchmarks.contests.rounds import settling_rounds
from benchmarks.peers import torchserve
from benchmarks.peers.venv import NotInstalled
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.plot import Bars, Values
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import new_store
from benchmarks.start.help import help_table, help_target, help_times
from benchmarks.start.large_archive import MB, OURS, PEER, large_archive, large_table
from benchmarks.start.runs import Run, run_once
from benchmarks.start.starts import start_of_torchserve

QUICK = ("--runs", "1", "--requests", "100", "--archive-runs", "1", "--archive-size", "10")
FIRST_ANSWER, FRONTEND, WORKER, SUPERVISOR = 1.5, 80.0, 45.0, 20.0
"""Targets: s, MB, MB, MB (10^6 bytes)."""
RATIO = 5.0
"""TorchServe takes at least so many times as long."""
MOST = 500
"""Rounds beside another server: a start takes a second, and one differs from the next by a tenth."""
HELPS = 20
"""Times that each command is asked for its help."""


@benchmark("start")
@click.option(
    "--runs",
    default=5,
    type=click.IntRange(1),
    help="Counted ones; one before them warms the disk cache. With --before at least 10, and more, up to "
    f"{MOST}, until the interval of the ratio is narrow.",
)
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

    TorchServe and the server of --before take turns with it. Before all that, the commands are asked for their help.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the first run writes what pip leaves where it installs
    times = help_times(HELPS)
    run = partial(run_once, requests, connections, workers, tokens=tokens)
    counted, earlier, theirs = list[Run](), list[Run](), _Peer(report, wanted=peer)
    warm = run(lasts=True)
    if before is not None:
        run(program=before)
    theirs.run()
    progress("start: warm-up")
    for number in settling_rounds("start", runs, lambda: _starts(counted, earlier), MOST):
        sides = [(counted, None), *([(earlier, before)] if before is not None else [])]
        for runs_of, program in rotated(sides, number):
            runs_of.append(run(program=program))
        theirs.run()
    report.notes.append(
        f"Runs: {len(counted)}, {workers} worker(s), memory after {requests:,} requests; MB are 10^6 bytes"
    )
    report.tables += [help_table(times), _table(counted, warm)]
    report.targets += [
        _target("start to first answer, s", [run.first_answer for run in counted], FIRST_ANSWER),
        _target("frontend resident, MB", [run.frontend for run in counted], FRONTEND),
        _target("echo worker resident, MB", [run.worker for run in counted], WORKER),
        *_supervisor_target(warm),
        help_target(times),
    ]
    compare(report, _starts(counted, earlier), what="Start", costs=_sizes(counted, earlier))
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


def _starts(now: Sequence[Run], before: Sequence[Run]) -> list[Pair]:
    """The time to the first answer as a rate, so that less of it is a loss; none without another checkout."""
    if not before:
        return []
    rates = [[1 / run.first_answer for run in runs] for runs in (now, before)]
    return [Pair("start to first answer", "starts/s", *rates)]


def _sizes(now: Sequence[Run], before: Sequence[Run]) -> list[Pair]:
    if not before:
        return []
    return [Pair("frontend", "MB", [run.frontend for run in now], [run.frontend for run in before])]


def _table(runs: Sequence[Run], warm: Run) -> Table:
    columns = {
        "msx-serve --start returns, s": [run.command for run in runs],
        "first answer, s": [run.first_answer for run in runs],
        "msx-serve --stop returns, s": [run.stop for run in runs],
        "frontend resident, MB": [run.frontend for run in runs],
        "… of which its own": [run.frontend_unique for run in runs],
        "echo worker resident, MB": [run.worker for run in runs],
        "… of which its own ": [run.worker_unique for run in runs],
        **({} if warm.supervisor is None else {"supervisor resident, MB": [warm.supervisor]}),
    }
    rows = [(what.strip(), figure(median(values)), spread(values)) for what, values in columns.items()]
    return Table("Start, stop and memory", ("what", "median", "lowest – highest"), rows)


def _supervisor_target(run: Run) -> list[Target]:
    return [] if run.supervisor is None else [_target("supervisor resident, MB", [run.supervisor], SUPERVISOR)]


def _ratio_target(seconds: Mapping[str, Values]) -> Target:
    middle = paired_ratio(seconds[PEER], seconds[OURS])[0]
    return Target("start to first answer, TorchServe / msx", f"{middle:.2f}", f"≥ {RATIO:g}", middle >= RATIO)


def _target(what: str, values: Sequence[float], limit: float) -> Target:
    middle = median(values)
    return Target(what, figure(middle), f"< {limit:g}", middle < limit)
