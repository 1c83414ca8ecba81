"""Cost of a request in the frontend by API: KServe, OpenAI and TGI beside /predictions in the same rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import click
import httpx

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.contests.before import BEFORE, Pair, before_option, compare
from benchmarks.contests.contest import ratio, rotated
from benchmarks.load.client import Address
from benchmarks.load.wrk import Wrk, wrk_of
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, serve
from benchmarks.servers.processor import frontend_micros
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

    def run(self, connections: int, seconds: float) -> float:
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
    the ratio to /predictions is the median of the rounds' ratios.
    """
    with ExitStack() as stack:
        programs = {NOW: None} if before is None else {NOW: None, BEFORE: before}
        routes = [route for version, program in programs.items() for route in _routes(stack, version, program)]
        for route in routes:
            _check(route.server.address, route.call)
            route.run(connections, warm_up)
        for number in range(rounds):
            for route in rotated(routes, number):
                route.costs.append(route.run(connections, seconds))
            progress(f"families: round {number + 1} of {rounds}")
    load = f"{connections} connections, {rounds} rounds of {seconds:g} s, {SIZE} bytes a request"
    report.notes.append(f"Load: {routes[0].load.version}, 1 thread, {load}")
    _tell(report, {version: {r.call: r.costs for r in routes if r.version == version} for version in programs})


def _routes(stack: ExitStack, version: str, program: Path | None) -> list[Route]:
    servers = {model: stack.enter_context(serve(model, config, program=program)) for model, config in CONFIGS.items()}
    return [
        Route(call, version, servers[call.model], stack.enter_context(wrk_of(call.body, dict(call.headers))))
        for call in calls()
    ]


def _check(address: Address, call: Call) -> None:
    """Raises click.ClickException when the answer is an error."""
    answer = httpx.post(address.url + call.path, content=call.body, headers=[*call.headers], timeout=LIMIT)
    if answer.status_code != 200:
        raise click.ClickException(f"{call.name}: {answer.status_code} {answer.text[:500]}")


Costs = Mapping[Call, Sequence[float]]
"""µs by round."""


def _tell(report: Report, found: Mapping[str, Costs]) -> None:
    report.tables += [costs_table(costs, version) for version, costs in found.items()]
    panels = {version: {call.name: costs[call] for call in costs} for version, costs in found.items()}
    report.plots.append(Bars("families", "The frontend by API, 1 KB in", "µs/request", panels, CAPTION))
    report.targets += ratio_targets(found[NOW])
    if BEFORE in found:
        pairs = [Pair(call.name, "CPU µs/request", costs, found[BEFORE][call]) for call, costs in found[NOW].items()]
        compare(report, pairs, what="The frontend's processor time", least=None)


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
