"""Costs of traces: predictions per second with a collector at 10 % and at none of the requests, beside no traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.load.collector import collector
from benchmarks.load.wrk import Wrk, wrk
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import serve

QUICK = ("--rounds", "1", "--seconds", "1")
LEAST_RATIO = 0.9
"""Least share of the predictions without traces, at 10 %."""
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 1\njobQueueSize: 1000\n"
BODY, CONNECTIONS = 128, 16
OFF, NONE, TENTH, ALL = "no traces", "0 %", "10 %", "100 %"
RATIOS = {NONE: 0.0, TENTH: 0.1, ALL: 1.0}


@benchmark("tracing")
@click.option("--rounds", default=9, type=click.IntRange(1), help="Of new servers, in turn.")
@click.option("--seconds", default=3.0, type=click.FloatRange(1), help="Of each server in a round.")
def main(report: Report, rounds: int, seconds: float) -> None:
    """Predictions per second of servers that trace no, 10 % and all requests, beside one that does not trace."""
    rates: dict[str, list[float]] = {name: [] for name in (OFF, *RATIOS)}
    with collector() as endpoint, wrk(BODY) as load:
        for number in range(rounds):
            for name in rates:
                rates[name].append(_rate(load, _settings(name, endpoint), seconds))
            progress(f"tracing: round {number + 1} of {rounds}")
    report.notes.append(f"{rounds} rounds of {seconds:g} s each, {CONNECTIONS} connections, {BODY} bytes; wrk")
    tell(report, rates)


def _rate(load: Wrk, settings: str, seconds: float) -> float:
    """Measure a new server: two processes that do the same differ by up to a tenth, for as long as they live."""
    with serve("echo", CONFIG, properties=settings) as server:
        load.run(server.address, "/predictions/echo", connections=CONNECTIONS, seconds=1)  # what the first ones bring
        return load.run(server.address, "/predictions/echo", connections=CONNECTIONS, seconds=seconds).per_second


def _settings(name: str, endpoint: str) -> str:
    return "" if name == OFF else f"otlp_endpoint={endpoint}\ntrace_sample_ratio={RATIOS[name]}\n"


def tell(report: Report, rates: Mapping[str, Sequence[float]]) -> None:
    rows = [
        [name, figure(median(found)), spread(found), f"{paired_ratio(found, rates[OFF])[0]:.3f}"]
        for name, found in rates.items()
    ]
    heads = ["sampled", "predictions/s", "lowest – highest", "of those without traces"]
    report.tables.append(Table("Predictions with traces", heads, rows))
    ratio, _, _ = paired_ratio(rates[TENTH], rates[OFF])
    report.targets.append(
        Target(
            "predictions/s at 10 %: of those without traces", f"{ratio:.3f}", f"≥ {LEAST_RATIO:g}", ratio >= LEAST_RATIO
        )
    )
