"""What a wait for company costs and gains: the adaptive policy beside fixed waits, ours, mosec's and TorchServe's."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from math import isinf

import click

from benchmarks._batching_arrivals import ARRIVALS, poisson
from benchmarks._batching_curves import Curve, advantage, curve, p99, sustained, worst_share
from benchmarks._batching_settings import BATCH_SIZE, DYNAMIC, SIZES, Setting, mosec, msx, torchserve
from benchmarks._command import benchmark, progress
from benchmarks._figures import figure
from benchmarks._open_loop import run
from benchmarks._plot import Lines
from benchmarks._table import Report, Table, Target
from benchmarks._venv import NotInstalled

QUICK = ("--rounds", "1", "--seconds", "0.5", "-n", "mlp", "-a", "poisson", "-w", "1", "-w", "10", "--no-peer")
WAITS = (1, 5, 10, 50, 100)
TORCHSERVE_DEFAULT = 100
"""ms."""
SHARES = (0.03, 0.1, 0.25, 0.45, 0.65, 0.85, 1.0)
FEW_SHARES = (0.1, 0.3, 0.5, 0.7)
"""Of what the server can do at most: the rates that are offered, and those where nothing is promised."""
BOUNDS = (0.005, 0.007, 0.01, 0.014, 0.02, 0.03, 0.05, 0.1)
"""Seconds: from what a request of the perceptron takes alone to the wait that TorchServe has by default."""
PATIENCE = 1.0
PAUSE = 1.0
"""Seconds for a server that was asked too much: what it still works on would disturb the next one."""
NOT_ANSWERED = "–"


@benchmark("batching")
@click.option("--net", "-n", "nets", multiple=True, default=tuple(SIZES), type=click.Choice([*SIZES]))
@click.option("--arrivals", "-a", multiple=True, default=tuple(ARRIVALS), type=click.Choice([*ARRIVALS]))
@click.option(
    "--wait", "-w", "waits", multiple=True, default=WAITS, type=click.IntRange(1), help="ms, of fixed settings."
)
@click.option("--rounds", default=2, type=click.IntRange(1), help="Every setting has its turn at each rate in each.")
@click.option("--seconds", default=1.2, type=click.FloatRange(0.1), help="Of each turn.")
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
    for net in nets:
        _contest(report, net, arrivals, waits, rounds, seconds, peer=peer and net == "mlp")


def _contest(
    report: Report,
    net: str,
    arrivals: Sequence[str],
    waits: Sequence[int],
    rounds: int,
    seconds: float,
    *,
    peer: bool,
) -> None:
    with ExitStack() as stack:
        settings = stack.enter_context(msx(net, waits))
        if peer:
            for join, some in ((mosec, waits), (torchserve, [min(waits), TORCHSERVE_DEFAULT])):
                try:
                    settings += stack.enter_context(join(net, some))
                except NotInstalled as missing:
                    report.notes.append(f"No comparison: {missing}")
        progress(f"batching: {net}: {', '.join(setting.name for setting in settings)} are up")
        body = bytes(SIZES[net])
        for setting in settings:
            run(setting.address, setting.path, body, [n / 200 for n in range(100)], 5.0)
        most = _capacity(settings[0], body)
        for kind in arrivals if net == "mlp" else arrivals[:1]:
            whole = net == "mlp" and kind == "poisson"
            playing = settings if whole else [one for one in settings if one.name.startswith("msx")]
            rates = [float(f"{share * most:.2g}") for share in (SHARES if whole else FEW_SHARES)]
            for number in range(rounds):
                _round(playing, rates, kind, seconds, number, body)
                progress(f"batching: {net}, {kind}: round {number + 1} of {rounds}")
            _tell(report, f"{net}, {kind} arrivals", f"batching-{net}-{kind}", playing, promised=whole)
            for setting in playing:
                setting.outcomes.clear()


def _capacity(setting: Setting, body: bytes) -> float:
    """Requests a second that are answered when more than that are asked."""
    rate = 20.0
    while True:
        due = poisson(rate, 0.5, random.Random(0))
        outcome = run(setting.address, setting.path, body, due, 4.0)
        if p99(outcome) > max(BOUNDS):
            return len(outcome.taken) / outcome.seconds
        rate *= 2


def _round(
    settings: Sequence[Setting], rates: Sequence[float], kind: str, seconds: float, number: int, body: bytes
) -> None:
    """The same requests for all. Where few come, a turn takes up to twice as long, so that there are enough."""
    for rate in rates:
        due = ARRIVALS[kind](rate, max(seconds, min(100 / rate, 2 * seconds)), random.Random(number))
        for setting in [*settings[number % len(settings) :], *settings[: number % len(settings)]]:
            outcome = run(setting.address, setting.path, body, due, PATIENCE)
            setting.outcomes.setdefault(rate, []).append(outcome)
            if p99(outcome) > max(BOUNDS):
                time.sleep(PAUSE)


def _tell(report: Report, title: str, name: str, settings: Sequence[Setting], *, promised: bool) -> None:
    curves = {setting.name: curve(setting.outcomes) for setting in settings}
    rates = [*curves[DYNAMIC]]
    rows = [[one, *(_ms(values[rate]) for rate in rates)] for one, values in curves.items()]
    report.tables.append(Table(f"{title}: p99, ms", ("requests/s", *(figure(round(rate)) for rate in rates)), rows))
    report.plots.append(_lines(name, title, settings))
    late = max(one.late for setting in settings for some in setting.outcomes.values() for one in some)
    used = max(one.processor for setting in settings for some in setting.outcomes.values() for one in some)
    client = f"the client was at most {late * 1e3:.2g} ms late (p99 of a turn) and took {used:.0%} of a core at most"
    report.notes.append(f"{title}: {client}")
    if promised:
        report.tables.append(_sustained(title, curves))
        report.targets += _targets(curves)


def _sustained(title: str, curves: dict[str, Curve]) -> Table:
    rows = [[name, *(figure(round(sustained(one, bound))) for bound in BOUNDS)] for name, one in curves.items()]
    columns = ("p99 within, ms", *(figure(round(bound * 1e3)) for bound in BOUNDS))
    return Table(f"{title}: requests/s with such a p99", columns, rows)


def _targets(curves: dict[str, Curve]) -> list[Target]:
    ours = curves[DYNAMIC]
    made = []
    for server in ("msx fixed", "mosec", "TorchServe"):
        fixed = {name: one for name, one in curves.items() if name.startswith(server)}
        if fixed:
            least = worst_share(ours, [*fixed.values()], BOUNDS)
            made.append(Target(f"{server}: of its best wait for each p99", f"{least:.2f}", "≥ 0.95", least >= 0.95))
            gains = {name: advantage(ours, one, [*curves.values()], BOUNDS) for name, one in fixed.items()}
            name = min(gains, key=lambda one: gains[one])
            made.append(
                Target(
                    f"over the sweep, of its best single wait: {name}",
                    f"{gains[name]:.2f}",
                    "≥ 1.3",
                    gains[name] >= 1.3,
                )
            )
    return made


def _lines(name: str, title: str, settings: Sequence[Setting]) -> Lines:
    series = {
        setting.name: {
            rate: finite
            for rate, outcomes in setting.outcomes.items()
            if (finite := [value * 1e3 for value in map(p99, outcomes) if not isinf(value)])
        }
        for setting in settings
    }
    return Lines(name, title, "requests/s", "p99 ms", series, log_y=True)


def _ms(value: float) -> str:
    return NOT_ANSWERED if isinf(value) else figure(value * 1e3)
