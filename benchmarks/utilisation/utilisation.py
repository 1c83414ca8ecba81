"""Requests served by a device that waits for Python, of those that a loop of the same calls makes."""

from __future__ import annotations

from itertools import product

import click

from benchmarks.cli.benchmark import benchmark
from benchmarks.contests.contest import at
from benchmarks.reports.table import Report
from benchmarks.utilisation import clock, lone, networks
from benchmarks.utilisation.served import Plan

QUICK = ("--rounds", "1", "--seconds", "2", "--alone", "1", "--call", "5", "--python", "1", "--requests", "200")

PARTS = ("clock", "networks", "encoder", "lone")
CALLS = tuple(f"{call:g}" for call in clock.BATCHES)


@benchmark("utilisation")
@click.option("--rounds", default=3, type=click.IntRange(1), help="Every server takes its turn in each round.")
@click.option("--seconds", default=6.0, type=click.FloatRange(2), help="Length of each turn.")
@click.option("--alone", default=2.0, type=click.FloatRange(1), help="Seconds of each turn with one connection.")
@click.option("--connections", "-c", default=256, type=click.IntRange(1))
@click.option("--call", "calls", multiple=True, default=CALLS, type=click.Choice(CALLS), help="ms; repeatable.")
@click.option(
    "--python", multiple=True, default=clock.PYTHON, type=click.FloatRange(0), help="ms around a call; repeatable."
)
@click.option("--requests", default=3000, type=click.IntRange(1), help="Of the table of a lone request's time.")
@click.option("--part", "parts", multiple=True, default=PARTS, type=click.Choice(PARTS), help="Repeatable.")
@click.option("--peer/--no-peer", default=True, help="Compare with mosec.")
def main(
    report: Report,
    rounds: int,
    seconds: float,
    alone: float,
    connections: int,
    calls: tuple[str, ...],
    python: tuple[float, ...],
    requests: int,
    parts: tuple[str, ...],
    peer: bool,
) -> None:
    """Requests per second of a device that waits for Python, of what its calls make in a loop.

    One worker each; all servers of a setting run for the whole time and take turns. The loop runs in the worker itself,
    before and behind each turn. Ratios are medians of the rounds.
    """
    plan = Plan(rounds, connections, seconds, alone)
    report.notes.append(f"Load: {at(connections)} for {seconds:g} s, then one for {alone:g} s, {rounds} rounds")
    settings = [clock.Setting(*one) for one in product(map(float, calls), python)]
    if "clock" in parts:
        clock.measure(report, settings, plan, peer=peer)
    if "networks" in parts and _is_there(report, networks.missing("mindspore")):
        networks.measure(report, networks.mindspore_models(), plan)
    if "encoder" in parts and _is_there(report, networks.missing("torch")):
        networks.measure(report, [networks.encoder_on_cpu()], plan)
        if _is_there(report, networks.missing_gpu()):
            networks.measure(report, [networks.encoder_on_gpu()], plan)
    if "lone" in parts:
        lone.measure(report, requests)


def _is_there(report: Report, why_not: str) -> bool:
    """Whether something can be measured here; a note says why not."""
    report.notes += [why_not] if why_not else []
    return not why_not
