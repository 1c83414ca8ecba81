"""Cost of a request without the model's work: echo, beside mosec, TorchServe, LitServe and bare ASGI in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from benchmarks.cli.benchmark import benchmark
from benchmarks.contests.before import before_option, compare
from benchmarks.contests.contest import Contestant, at, bars, rotated, table
from benchmarks.contests.echo import (
    PRODUCTS,
    Entrant,
    asgi_echo,
    enter,
    litserve_echo,
    mosec_echo,
    msx_echo,
    torchserve_echo,
    versions,
)
from benchmarks.contests.rounds import play_round, settling_rounds
from benchmarks.contests.verdicts import (
    costs_with_before,
    latency_targets,
    pairs_with_before,
    processor_targets,
    targets,
)
from benchmarks.load.wrk import Wrk, wrk
from benchmarks.peers import litserve
from benchmarks.reports.figures import figure, median
from benchmarks.reports.table import Report, Target
from benchmarks.servers import trivial

QUICK = ("--rounds", "1", "--seconds", "1", "--warm-up", "1", "--connections", "32")
BATCH = 32
OURS = (msx_echo(), msx_echo("tokens on", tokens=True))
MOSEC, TORCHSERVE, ASGI = mosec_echo(), torchserve_echo(), asgi_echo()
BATCHING = msx_echo(f"batch {BATCH}", batch=BATCH)
MOSEC_BEST, MOSEC_DEFAULT = (mosec_echo(f"batch {BATCH}, wait {wait} ms", batch=BATCH, wait=wait) for wait in (1, 10))
TORCHSERVE_BEST, TORCHSERVE_DEFAULT = (
    torchserve_echo(f"batch {BATCH}, delay {delay} ms", batch=BATCH, delay=delay) for delay in (1, 100)
)


def _one_at_a_time(field: Sequence[Contestant], connections: Sequence[int]) -> list[Target]:
    plain, tokens = ([one.name] for one in OURS)
    found = []
    if 32 in connections:
        load = "batch 1, " + at(32)
        found += targets(field, 32, plain, MOSEC.name, 2.5, load) + targets(field, 32, tokens, MOSEC.name, 2.3, load)
        found += targets(field, 32, plain + tokens, TORCHSERVE.name, 10, load)
        found += processor_targets(field, 32, plain, ASGI.name, 0.8)
    if 1 in connections:
        found += targets(field, 1, plain, MOSEC.name, 1.0, "batch 1, " + at(1))
    return found


def _batches(field: Sequence[Contestant], connections: Sequence[int]) -> list[Target]:
    ours = [BATCHING.name]
    found = [it for count in (32, 128) if count in connections for it in _of_mosec_at_its_best(field, count)]
    if 128 in connections:
        found += processor_targets(field, 128, ours, ASGI.name, 0.5)
    if 1 in connections:
        for peer in (MOSEC_DEFAULT, TORCHSERVE_DEFAULT):
            found += latency_targets(field, 1, ours, peer.name, 0.1)
    return found


def _of_mosec_at_its_best(field: Sequence[Contestant], connections: int) -> list[Target]:
    mosecs = [one for one in field if one.name in (MOSEC_BEST.name, MOSEC_DEFAULT.name)]
    if not mosecs:
        return []
    ours, best = [BATCHING.name], max(mosecs, key=lambda one: median(one.rates(connections))).name
    rates = targets(field, connections, ours, best, 1.2, at(connections))
    return rates + processor_targets(field, connections, ours, best, 0.85)


@dataclass(frozen=True)
class Contest:
    title: str
    plot: str
    entrants: Sequence[Entrant]
    peers: Sequence[Entrant]
    """The tables have a column of ratios for each of these."""
    targets: Callable[[Sequence[Contestant], Sequence[int]], list[Target]]


CONTESTS = {
    "single": Contest(
        "Echo, one at a time",
        "overhead",
        (*OURS, MOSEC, TORCHSERVE, litserve_echo(), litserve_echo("fast queue", server=litserve.BEST), ASGI),
        (MOSEC, TORCHSERVE),
        _one_at_a_time,
    ),
    "batching": Contest(
        f"Echo, batches of up to {BATCH}",
        "overhead-batching",
        (
            BATCHING,
            MOSEC_BEST,
            MOSEC_DEFAULT,
            TORCHSERVE_BEST,
            TORCHSERVE_DEFAULT,
            litserve_echo(f"batch {BATCH}, fast queue", {"max_batch_size": BATCH}, litserve.BEST),
            ASGI,
        ),
        (MOSEC_BEST, TORCHSERVE_BEST),
        _batches,
    ),
}


@dataclass(frozen=True)
class Plan:
    rounds: int
    seconds: float
    warm_up: float
    connections: Sequence[int]
    body: int
    before: Path | None


@benchmark("overhead")
@click.option("--rounds", default=7, type=click.IntRange(1), help="Every server takes its turn in each round.")
@click.option("--seconds", default=1.0, type=click.FloatRange(1), help="Length of each turn; wrk takes whole seconds.")
@click.option(
    "--warm-up",
    default=4.0,
    type=click.FloatRange(1),
    help="Seconds per server before the counted rounds; three times as many for Java.",
)
@click.option("--connections", "-c", multiple=True, default=(1, 32, 128), type=click.IntRange(1), help="Repeatable.")
@click.option("--body", default=128, type=click.IntRange(2), help="Bytes.")
@click.option(
    "--only",
    multiple=True,
    default=PRODUCTS,
    type=click.Choice([*PRODUCTS]),
    help="Products that take part; repeatable.",
)
@before_option
@click.option("--contest", multiple=True, default=CONTESTS, type=click.Choice([*CONTESTS]), help="Repeatable.")
def main(
    report: Report,
    rounds: int,
    seconds: float,
    warm_up: float,
    connections: tuple[int, ...],
    body: int,
    only: tuple[str, ...],
    before: Path | None,
    contest: tuple[str, ...],
) -> None:
    """Requests per second of an echo model beside other servers: one worker each, load by wrk.

    Two contests: requests one at a time (batchSize 1), and batches of up to 32. All servers of a contest run for the
    whole time, but only one has load at a time; they take turns in rounds, so that a disturbance meets all of them.
    A server and the one of --before take turns of a tenth of a second. The ratio is the median of the rounds' ratios.
    """
    plan = Plan(rounds, seconds, warm_up, connections, body, before)
    with wrk(body) as load:
        report.notes.append(f"Load: {load.version}, 1 thread, turns of {seconds:g} s, {body} bytes a request")
        report.notes += [versions(only), _ceiling(load, plan)]
        for name in contest:
            _hold(CONTESTS[name], name, plan, load, only, report)


def _hold(contest: Contest, name: str, plan: Plan, load: Wrk, only: Sequence[str], report: Report) -> None:
    with ExitStack() as stack:
        entrants = [one for one in contest.entrants if one.product in only]
        field = enter(stack, _with_before(entrants, plan.before), plan.body, report)
        for contestant in field:
            contestant.warm_up(load, max(plan.connections), plan.warm_up)
        pairs = partial(pairs_with_before, field, plan.connections)
        for number in settling_rounds(f"overhead: {name}", plan.rounds, pairs):
            play_round(lambda _: load, rotated(field, number), plan.connections, plan.seconds)
    peers = [peer.name for peer in contest.peers]
    report.notes.append(f"{contest.title}: {number + 1} rounds")
    report.tables += [table(f"{contest.title}, {at(count)}", field, count, peers) for count in plan.connections]
    report.plots.append(bars(contest.plot, f"{contest.title}, {plan.body} bytes", field, plan.connections))
    report.targets += contest.targets(field, plan.connections)
    compare(report, pairs(), what=contest.title, costs=costs_with_before(field, plan.connections))


def _with_before(entrants: Sequence[Entrant], program: Path | None) -> list[Entrant]:
    """All of these, and each setting of ours once more by the other checkout."""
    others = [one.at(program) for one in entrants if one.at is not None] if program is not None else []
    return [*entrants, *others]


def _ceiling(load: Wrk, plan: Plan) -> str:
    """The rate of the load against a server that only answers: no server can exceed it."""
    with trivial.serve(plan.body) as address:
        load.run(address, "/", connections=max(plan.connections), seconds=1)
        rates = [load.run(address, "/", connections=count, seconds=2).per_second for count in plan.connections]
    found = ", ".join(f"{figure(rate)} at {at(count)}" for rate, count in zip(rates, plan.connections, strict=True))
    return f"Limit of the load: requests/s of a server that has its answer ready, and no worker: {found}"
