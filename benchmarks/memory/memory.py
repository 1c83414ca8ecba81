"""The frontend's memory after a million requests, and the cost of a request with many models registered."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.contests.contest import Load, rotated
from benchmarks.load.wrk import Wrk, wrk
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.plot import Lines
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, serve, wait_ready
from benchmarks.servers.processor import frontend_micros

QUICK = ("--requests", "2000", "--streams", "200", "--warm-up", "1000", "--models", "5", "--rounds", "1")
GROWTH, FLAT = 5.0, 0.05
"""Targets: MB (10^6 bytes), and a part of the processor time."""
CONNECTIONS, BODY = 32, 128
STEPS = 10
"""Times that memory is read between the warm-up and the end."""
SLICE = 10.0
"""Seconds of load, at most, between two counts of the requests."""
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 1\n"
ANY_WORKERS = "batchSize: 1\n"
LIMIT = 60.0
"""Seconds for a call of the management API."""


@dataclass(frozen=True)
class Weight:
    """Bytes. `unique` is what no other process shares."""

    resident: int
    unique: int


@dataclass(frozen=True)
class Crowd:
    """One model that is used, and others that are only registered: so many in all."""

    models: int
    costs: list[float] = field(default_factory=list)
    """µs of the frontend's processor time a request, by round."""

    @property
    def name(self) -> str:
        return f"{self.models} model{'s' if self.models > 1 else ''}"


@benchmark("memory")
@click.option("--requests", default=1_000_000, type=click.IntRange(1), help="Whole answers, after the warm-up.")
@click.option("--streams", default=100_000, type=click.IntRange(0), help="Of ten events each, after the warm-up.")
@click.option("--warm-up", default=100_000, type=click.IntRange(1), help="Requests; of streams a tenth.")
@click.option("--models", default=200, type=click.IntRange(2), help="Registered ones, all but one without workers.")
@click.option("--rounds", default=9, type=click.IntRange(1), help="With one model and with many.")
@click.option("--seconds", default=3.0, type=click.FloatRange(1), help="Of each turn in them.")
def main(report: Report, requests: int, streams: int, warm_up: int, models: int, rounds: int, seconds: float) -> None:
    """Memory of the frontend over many requests, and its processor time a request over many models.

    Memory is read after a warm-up, and then at equal distances up to the end. In the second part one server has one
    model and many in turn; the ratio is the median of the rounds' ratios.
    """
    with wrk(BODY) as load:
        report.notes.append(f"Load: {load.version}, 1 thread, {CONNECTIONS} connections, {BODY} bytes a request")
        found = {f"{requests:,} answers": _weigh("echo", load, warm_up, requests)}
        if streams:
            found[f"{streams:,} streams of 10 events"] = _weigh("ten_events", load, max(warm_up // 10, 1), streams)
        crowds = _costs(load, models, rounds, seconds)
    report.tables += [growth_table(found), cost_table(crowds)]
    report.plots.append(growth_plot(found))
    report.targets += [growth_target(what, weights) for what, weights in found.items()]
    report.targets.append(cost_target(crowds))


def _weigh(service: str, load: Wrk, warm_up: int, requests: int) -> list[Weight]:
    with serve(service, CONFIG) as server:
        count = Count(load, server, service)
        count.up_to(warm_up)
        weights, count.done = [_weight(server)], 0
        for step in range(1, STEPS + 1):
            count.up_to(requests * step // STEPS)
            weights.append(_weight(server))
            progress(f"memory: {service}, {count.done:,} of {requests:,} requests")
    return weights


@dataclass
class Count:
    """Count of a server's requests."""

    load: Load
    server: Server
    service: str
    done: int = 0
    rate: float = 1000.0

    def up_to(self, total: int) -> None:
        while self.done < total:
            seconds = min((total - self.done) / self.rate, SLICE)
            result = self.load.run(
                self.server.address, f"/predictions/{self.service}", connections=CONNECTIONS, seconds=seconds
            )
            self.done, self.rate = self.done + result.requests, max(result.per_second, 1.0)


def _weight(server: Server) -> Weight:
    memory = server.process.memory_full_info()
    return Weight(memory.rss, memory.uss)


def growth_table(found: dict[str, list[Weight]]) -> Table:
    rows = []
    for what, weights in found.items():
        first, middle, last = weights[0], weights[len(weights) // 2], weights[-1]
        shown = [_megabytes(first.resident), _megabytes(last.resident), _megabytes(last.resident - first.resident)]
        second_half = _megabytes(last.resident - middle.resident)
        rows.append([what, *shown, second_half, _megabytes(last.unique - first.unique)])
    columns = ("after", "after the warm-up", "at the end", "growth", "… in the second half", "… of its own memory")
    return Table("The frontend's resident memory, MB", columns, rows)


CAPTION = "All the memory of the frontend, from zero, while the load passes: a leak would be a slope that goes on."


def growth_plot(found: dict[str, list[Weight]]) -> Lines:
    """Plot against the part of the load that has passed."""
    series = {
        what: {index / STEPS: [weight.resident / 1e6] for index, weight in enumerate(weights)}
        for what, weights in found.items()
    }
    return Lines("memory", "The frontend's resident memory", "part of the load", "MB", series, caption=CAPTION)


def growth_target(what: str, weights: Sequence[Weight]) -> Target:
    growth = (weights[-1].resident - weights[0].resident) / 1e6
    return Target(f"frontend after {what}: growth, MB", f"{growth:.2f}", f"< {GROWTH:g}", growth < GROWTH)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.2f}"


def _costs(load: Wrk, models: int, rounds: int, seconds: float) -> list[Crowd]:
    """Uses one server, because two servers differ by more than the effect; it starts with one model."""
    crowds = [Crowd(1), Crowd(models)]
    with serve("echo", ANY_WORKERS) as server:
        _ask("PUT", f"{server.management}/models/echo?min_worker=1&max_worker=1&synchronous=true")
        wait_ready(server)
        there = 1
        for number in range(rounds):
            for crowd in rotated(crowds, number):
                _change(server, there, crowd.models)
                there = crowd.models
                crowd.costs.append(_cost(server, load, seconds))
            progress(f"memory: models, round {number + 1} of {rounds}")
    return crowds


def _change(server: Server, before: int, after: int) -> None:
    """Register models without workers, or unregister them: so many in all."""
    for number in range(before, after):
        _ask("POST", f"{server.management}/models?url=echo.mar&model_name=echo{number}&initial_workers=0")
    for number in range(after, before):
        _ask("DELETE", f"{server.management}/models/echo{number}")


def _ask(method: str, url: str) -> None:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=LIMIT) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        raise click.ClickException(f"{method} {url}: {error.code} {error.read()[:500]!r}") from None


def _cost(server: Server, load: Wrk, seconds: float) -> float:
    """The first second does not count."""
    for lasting in (1.0, seconds):
        cost = frontend_micros(load, server, "/predictions/echo", connections=CONNECTIONS, seconds=lasting)
    return cost


def cost_table(crowds: Sequence[Crowd]) -> Table:
    rows = []
    for crowd in crowds:
        middle, low, high = paired_ratio(crowd.costs, crowds[0].costs)
        of_one = f"{middle:.3f} ({low:.3f} – {high:.3f})"
        rows.append([crowd.name, figure(median(crowd.costs)), spread(crowd.costs), of_one])
    columns = ("registered", "CPU µs/request", "lowest – highest", f"of {crowds[0].name}")
    return Table("The frontend's processor time", columns, rows)


def cost_target(crowds: Sequence[Crowd]) -> Target:
    one, many = crowds
    middle = paired_ratio(many.costs, one.costs)[0]
    what = f"frontend's CPU time a request, {many.name}: of that with {one.name}"
    return Target(what, f"{middle:.3f}", f"≤ {1 + FLAT:g}", middle <= 1 + FLAT)
