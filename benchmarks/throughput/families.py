"""Cost of a request in the frontend by API: KServe, OpenAI and TGI beside /predictions in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click
import httpx

from benchmarks.cli.benchmark import benchmark
from benchmarks.contests.before import BEFORE, Pair, before_option, compare
from benchmarks.contests.contest import ratio, rotated
from benchmarks.contests.interleaved import cores_apart, run_in_slices
from benchmarks.contests.rounds import settling_rounds
from benchmarks.load.client import Address
from benchmarks.load.wrk import Wrk, wrk_of
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, serve
from benchmarks.servers.processor import frontend_micros, processor_seconds
from benchmarks.throughput.requests import ANSWERER, LLM, SIZE, Call, calls

QUICK = ("--rounds", "1", "--seconds", "1", "--warm-up", "1")
CONFIGS = {
    ANSWERER: "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 1\njobQueueSize: 1000\n",
    LLM: "minWorkers: 1\nmaxWorkers: 1\nmaxConcurrent: 64\njobQueueSize: 1000\n",
}
"""model-config.yaml by model."""
NOW = "now"
LIMIT = 30.0
"""Seconds for an answer."""
CAPTION = "The frontend's processor time for a request, its workers' left out; shorter is better."


@dataclass
class Route:
    """A call to one server. `costs` are µs of the frontend's processor time a request, one a round."""

    call: Call
    version: str
    """NOW or BEFORE."""
    server: Server
    load: Wrk
    costs: list[float] = field(default_factory=list)

    def take(self, connections: int, seconds: float) -> None:
        self.costs.append(self.run(connections, seconds))

    def run(self, connections: int, seconds: float) -> float:
        """Return µs of the frontend's processor time a request. Raises click.ClickException."""
        try:
            return frontend_micros(self.load, self.server, self.call.path, connections=connections, seconds=seconds)
        except click.ClickException as error:
            raise click.ClickException(f"{self.call.name}, {self.version}: {error.message}") from None


@benchmark("families")
@click.option("--rounds", default=7, type=click.IntRange(1), help="Each API takes its turn in each round.")
@click.option("--seconds", default=2.0, type=click.FloatRange(1), help="Length of each turn; wrk takes whole seconds.")
@click.option("--warm-up", default=2.0, type=click.FloatRange(1), help="Seconds per server before the counted rounds.")
@click.option("--connections", "-c", default=1, type=click.IntRange(1), help="Kept alive, one request at a time each.")
@before_option
def main(report: Report, rounds: int, seconds: float, warm_up: float, connections: int, before: Path | None) -> None:
    """Processor time of the frontend by API: 1 KB in, a short answer out, batchSize 1, load by wrk.

    User and system time of the frontend's process, by request; its workers do not count. All APIs take turns in rounds;
    the ratio to /predictions is the median of the rounds' ratios. Both servers of an API take turns of a tenth of a
    second.
    """
    with ExitStack() as stack:
        programs = {NOW: None} if before is None else {NOW: None, BEFORE: before}
        routes = [route for version, program in programs.items() for route in _routes(stack, version, program)]
        for route in routes:
            _check(route.server.address, route.call)
            route.run(connections, warm_up)
        turns = _turns(routes)
        for number in settling_rounds("families", rounds, lambda: _pairs(_costs(routes))):
            for turn in rotated(turns, number):
                turn(connections, seconds)
    load = f"{connections} connections, {number + 1} rounds of {seconds:g} s, {SIZE} bytes a request"
    report.notes.append(f"Load: {routes[0].load.version}, 1 thread, {load}")
    _tell(report, _costs(routes))


def _routes(stack: ExitStack, version: str, program: Path | None) -> list[Route]:
    servers = {model: stack.enter_context(serve(model, config, program=program)) for model, config in CONFIGS.items()}
    return [
        Route(call, version, servers[call.model], stack.enter_context(wrk_of(call.body, dict(call.headers))))
        for call in calls()
    ]


Take = Callable[[int, float], None]
"""A turn of one API with so many connections and seconds."""


def _turns(routes: Sequence[Route]) -> list[Take]:
    """Return a turn for each API; both servers of it share theirs."""
    found: list[Take] = []
    for call in dict.fromkeys(route.call for route in routes):
        now, *before = (route for route in routes if route.call == call)
        found.append(partial(_take_both, now, before[0]) if before else now.take)
    return found


def _take_both(now: Route, before: Route, connections: int, seconds: float) -> None:
    """Add the costs of both. Raises click.ClickException."""
    routes = (now, before)
    pids = [route.server.process.pid for route in routes]
    starts = [partial(one.load.start, one.server.address, one.call.path, connections=connections) for one in routes]
    with cores_apart([route.server.family() for route in routes]):
        spent = [-processor_seconds(pid) for pid in pids]
        results = run_in_slices(starts, seconds)
    for route, pid, earlier, result in zip(routes, pids, spent, results, strict=True):
        route.costs.append((processor_seconds(pid) + earlier) * 1e6 / result.requests)


def _check(address: Address, call: Call) -> None:
    """Raises click.ClickException when the answer is an error."""
    answer = httpx.post(address.url + call.path, content=call.body, headers=[*call.headers], timeout=LIMIT)
    if answer.status_code != 200:
        raise click.ClickException(f"{call.name}: {answer.status_code} {answer.text[:500]}")


Costs = Mapping[Call, Sequence[float]]
"""µs by round."""


def _costs(routes: Sequence[Route]) -> dict[str, dict[Call, list[float]]]:
    versions = dict.fromkeys(route.version for route in routes)
    return {version: {one.call: one.costs for one in routes if one.version == version} for version in versions}


def _pairs(found: Mapping[str, Costs]) -> list[Pair]:
    """Return what both servers cost, by API; nothing without another checkout."""
    before = found.get(BEFORE, {})
    return [Pair(call.name, "CPU µs/request", costs, before[call]) for call, costs in found[NOW].items() if before]


def _tell(report: Report, found: Mapping[str, Costs]) -> None:
    report.tables += [costs_table(costs, version) for version, costs in found.items()]
    panels = {version: {call.name: costs[call] for call in costs} for version, costs in found.items()}
    report.plots.append(Bars("families", "The frontend by API, 1 KB in", "µs/request", panels, CAPTION))
    report.targets += ratio_targets(found[NOW])
    compare(report, [], costs=_pairs(found), what="The frontend's processor time")


def costs_table(costs: Costs, version: str) -> Table:
    """The ratio is to the first of the calls."""
    first = next(iter(costs))
    columns = ("request", "CPU µs/request", "lowest – highest", f"of {first.name}")
    rows = [(call.name, figure(median(row)), spread(row), ratio(row, costs[first])) for call, row in costs.items()]
    return Table(f"The frontend's processor time, {version}", columns, rows)


def ratio_targets(costs: Costs) -> list[Target]:
    first = next(iter(costs))
    ratios = {call: paired_ratio(row, costs[first])[0] for call, row in costs.items()}
    return [
        Target(f"{call.name}: CPU time of {first.name}", f"{found:.2f}", f"≤ {call.most:g}", found <= call.most)
        for call, found in ratios.items()
        if call.most is not None
    ]
