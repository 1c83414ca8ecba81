"""Costs and gains of a wait for a fuller batch: the adaptive policy, and fixed waits of MSX, mosec and TorchServe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import isinf

import click

from benchmarks.batching.arrivals import ARRIVALS
from benchmarks.batching.curves import curve, gains, over_the_sweep, p99
from benchmarks.batching.rounds import LIMIT, Field, capacity, warm_up
from benchmarks.batching.settings import (
    BATCH_SIZE,
    DYNAMIC,
    SIZES,
    Setting,
    fixed,
    mosec_settings,
    msx_settings,
    torchserve_settings,
)
from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.load.open_loop import OpenLoop
from benchmarks.peers.venv import NotInstalled
from benchmarks.reports.figures import figure
from benchmarks.reports.plot import Lines
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.cores import one_core_left

QUICK = ("--rounds", "1", "--seconds", "0.5", "-n", "mlp", "-a", "poisson", "-w", "1", "-w", "10", "--no-peer")
WAITS = (1, 5, 10, 50, 100)
MOSEC_WAITS = (1, 10, 50)
TORCHSERVE_WAITS = (1, 50, 100)
"""ms. mosec's default is 10, TorchServe's 100, and 50 in its guide to batching; both accept no less than 1."""
SHARES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.75, 0.85)
BETWEEN = (0.02, 0.14, 0.27, 0.42, 0.58, 0.93)
"""Shares of the server's capacity: the rates for all settings, and those for our curve only."""
FEW_SHARES, FEW_WAITS, FEW_ROUNDS = (0.1, 0.3, 0.5, 0.7), (1, 10, 100), 2
"""Settings without a promise."""
NOT_ANSWERED = "–"
NOT_ASKED = ""


@benchmark("batching")
@click.option("--net", "-n", "nets", multiple=True, default=tuple(SIZES), type=click.Choice([*SIZES]))
@click.option("--arrivals", "-a", multiple=True, default=tuple(ARRIVALS), type=click.Choice([*ARRIVALS]))
@click.option(
    "--wait", "-w", "waits", multiple=True, default=WAITS, type=click.IntRange(1), help="ms, of our fixed ones."
)
@click.option("--rounds", default=5, type=click.IntRange(1), help="Of the perceptron under Poisson arrivals.")
@click.option("--seconds", default=1.2, type=click.FloatRange(0.1), help="Length of each turn.")
@click.option("--peer/--no-peer", default=True, help="Compare with mosec and TorchServe.")
def main(
    report: Report,
    nets: tuple[str, ...],
    arrivals: tuple[str, ...],
    waits: tuple[int, ...],
    rounds: int,
    seconds: float,
    peer: bool,
) -> None:
    """Latency by arrival rate of MindSpore models, by the adaptive batching policy and by fixed waits.

    Requests come when they are due, from a client in a process of its own, and their time counts from that instant.
    """
    report.notes.append(f"One worker a setting, on a core of its own; batches of up to {BATCH_SIZE}; {rounds} rounds")
    with one_core_left(), OpenLoop() as client:
        for net in nets:
            contest = Contest(report, client, net, rounds, seconds)
            contest.run(arrivals, waits, peer=peer and net == PROMISED)


PROMISED = "mlp"
"""The network of the contest with the peer, under Poisson arrivals."""


@dataclass
class Contest:
    """Contest of one network."""

    report: Report
    client: OpenLoop
    net: str
    rounds: int
    seconds: float

    def run(self, arrivals: Sequence[str], waits: Sequence[int], *, peer: bool) -> None:
        body = bytes(SIZES[self.net])
        with ExitStack() as stack:
            settings = self._settings(stack, waits, peer=peer)
            for setting in settings:
                warm_up(self.client, setting, body)
            most = capacity(self.client, settings[0], body)
            for kind in arrivals if self.net == PROMISED else arrivals[:1]:
                self._play(settings, kind, waits, body, most)

    def _settings(self, stack: ExitStack, waits: Sequence[int], *, peer: bool) -> list[Setting]:
        settings = stack.enter_context(msx_settings(self.net, waits if self.net == PROMISED else _few(waits)))
        for join, some in ((mosec_settings, MOSEC_WAITS), (torchserve_settings, TORCHSERVE_WAITS)) if peer else ():
            try:
                settings += stack.enter_context(join(self.net, some, self.client))
            except NotInstalled as missing:
                self.report.notes.append(f"No comparison: {missing}")
        progress(f"batching: {self.net}: {', '.join(setting.name for setting in settings)} are up")
        return settings

    def _play(self, settings: Sequence[Setting], kind: str, waits: Sequence[int], body: bytes, most: float) -> None:
        whole = self.net == PROMISED and kind == "poisson"
        few = {DYNAMIC, *map(fixed, _few(waits))}
        playing = settings if whole else [one for one in settings if one.name in few]
        rates = _rates(most, SHARES if whole else FEW_SHARES)
        between = _rates(most, BETWEEN) if whole else []
        field = Field(self.client, playing, body, kind, self.seconds, rates, between)
        rounds = self.rounds if whole else min(self.rounds, FEW_ROUNDS)
        for number in range(rounds):
            field.play(number)
            progress(f"batching: {self.net}, {kind}: round {number + 1} of {rounds}")
        _tell(
            self.report, f"{self.net}, {kind} arrivals", f"batching-{self.net}-{kind}", playing, rates, promised=whole
        )
        for setting in playing:
            setting.outcomes.clear()


def _few(waits: Sequence[int]) -> Sequence[int]:
    return [wait for wait in waits if wait in FEW_WAITS] or waits


def _rates(most: float, shares: Sequence[float]) -> list[float]:
    return [float(f"{share * most:.2g}") for share in shares]


def _tell(
    report: Report, title: str, name: str, settings: Sequence[Setting], rates: Sequence[float], *, promised: bool
) -> None:
    curves = {setting.name: curve(setting.outcomes) for setting in settings}
    rows = [[one, *(_ms(values.get(rate)) for rate in rates)] for one, values in curves.items()]
    report.tables.append(Table(f"{title}: p99, ms", ("requests/s", *(figure(round(rate)) for rate in rates)), rows))
    report.plots.append(_lines(name, title, settings))
    late = max(one.late for setting in settings for some in setting.outcomes.values() for one in some)
    used = max(one.processor for setting in settings for some in setting.outcomes.values() for one in some)
    client = f"the client was at most {late * 1e3:.2g} ms late (p99 of a turn) and took {used:.0%} of a core at most"
    report.notes.append(f"{title}: {client}")
    if promised:
        ours = curves.pop(DYNAMIC)
        table = {one: gains(ours, values, LIMIT) for one, values in curves.items()}
        report.tables.append(gains_table(title, table, rates))
        report.targets += targets(table)


def gains_table(title: str, table: Mapping[str, Mapping[float, float]], rates: Sequence[float]) -> Table:
    rows = [
        [one, *(f"{found[rate]:.2f}" if rate in found else NOT_ASKED for rate in rates), f"{over_the_sweep(found):.2f}"]
        for one, found in table.items()
    ]
    columns = ("requests/s", *(figure(round(rate)) for rate in rates), "over the sweep")
    return Table(f"{title}: requests/s of {DYNAMIC} at equal p99, by those of", columns, rows)


def targets(table: Mapping[str, Mapping[float, float]]) -> list[Target]:
    made = []
    for server in ("msx fixed", "mosec", "TorchServe"):
        if found := {name: one for name, one in table.items() if name.startswith(server)}:
            least = min(min(one.values()) for one in found.values())
            made.append(Target(f"{server}: of its best wait for each rate", f"{least:.2f}", "≥ 0.95", least >= 0.95))
            mean, name = min((over_the_sweep(one), name) for name, one in found.items())
            what = f"over the sweep, of its best single wait: {name}"
            made.append(Target(what, f"{mean:.2f}", "≥ 1.3", mean >= 1.3))
    return made


CAPTION = (
    "The time within which 99 % of the requests are answered, by how many come in a second, on a logarithmic scale; "
    "lower is better. A line ends where a server does not keep up."
)


def _lines(name: str, title: str, settings: Sequence[Setting]) -> Lines:
    series = {
        setting.name: {
            rate: finite
            for rate, outcomes in setting.outcomes.items()
            if (finite := [value * 1e3 for value in map(p99, outcomes) if not isinf(value)])
        }
        for setting in settings
    }
    return Lines(name, title, "requests/s", "p99 ms", series, log_y=True, caption=CAPTION)


def _ms(value: float | None) -> str:
    if value is None:
        return NOT_ASKED
    return NOT_ANSWERED if isinf(value) else figure(value * 1e3)
