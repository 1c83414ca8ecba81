"""Costs and gains of rules for the number of workers, in virtual time: the same arrivals for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import click

from benchmarks.autoscaling.arrivals import Pattern, patterns
from benchmarks.autoscaling.rules import Fixed, Ours, RayServe, Rule
from benchmarks.autoscaling.world import LEAST, MOST, SHAPE, STEP, Outcome, World
from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.reports.figures import figure
from benchmarks.reports.plot import Bars, Lines
from benchmarks.reports.table import Report, Table
from msx_core.config import AutoscalingOptions
from msx_frontend.models.autoscaling.staffing import enough_for_queue_time

QUICK = ("--hours", "0.2", "--steps-and-bursts", "0.2")
OURS, MEAN, PEAK = "msx", "fixed, for the mean", "fixed, for the peak"
RAY, RAY_ONE = "Ray Serve's rule, target 2", "Ray Serve's rule, target 1"
QUICK_RAY = "the same with msx's delays"
COLUMNS = ("rule", "workers, mean", "above what was needed, %", "time above target, %", "p99 queue time, s", "changes")


@benchmark("autoscaling")
@click.option("--service", default=0.2, type=click.FloatRange(0.001), help="Seconds a request, on average.")
@click.option("--load", default=20.0, type=click.FloatRange(0), help="Seconds that a new worker loads.")
@click.option("--hours", default=24.0, type=click.FloatRange(0.1), help="Of the day.")
@click.option("--steps-and-bursts", default=1.0, type=click.FloatRange(0.1), help="Hours of these.")
def main(report: Report, service: float, load: float, hours: float, steps_and_bursts: float) -> None:
    """Over-provisioning, and time above the target, of rules that say how many workers there are."""
    options = AutoscalingOptions()
    report.notes += [
        f"Simulated: {service:g} s a request (gamma, shape {SHAPE:g}), one at a time on a worker; a worker loads for "
        f"{load:g} s; {LEAST} to {MOST} workers; target: {options.queue_seconds:g} s in the queue",
        "Needed: the fewest workers whose mean queue time is below the target at the true rate of that instant (M/M/c)",
    ]
    report.simulated = True
    for pattern in patterns(hours, steps_and_bursts):
        found = played(pattern, service, load)
        report.tables.append(_table(pattern, found))
        report.plots += [_bars(pattern, found), _lines(pattern, found, _need(pattern, service))]


def played(pattern: Pattern, service: float, load: float) -> dict[str, Outcome]:
    """Each rule with the same arrivals."""
    options = AutoscalingOptions()
    arrivals, target, needed = pattern.arrivals(), options.queue_seconds, _need(pattern, service)
    mean, peak = (
        enough_for_queue_time(rate, 1 / service, target, MOST) for rate in (pattern.mean_with_bursts, pattern.peak)
    )
    rules = _rules(mean, peak, needed(0), options)
    found: dict[str, Outcome] = {}
    for name, (workers, rule) in rules.items():
        world = World(arrivals, rule, workers=workers, service=service, load=load, target=target, needed=needed)
        found[name] = world.run(pattern.seconds)
        progress(f"autoscaling: {pattern.name}: {name}")
    return found


def _need(pattern: Pattern, service: float) -> Callable[[float], int]:
    """How many workers an instant needs."""

    @cache
    def enough(rate: float) -> int:
        return enough_for_queue_time(rate, 1 / service, AutoscalingOptions().queue_seconds, MOST)

    return lambda now: enough(round(pattern.rate(now), 2))


def _rules(mean: int, peak: int, first: int, options: AutoscalingOptions) -> dict[str, tuple[int, Rule]]:
    """Each with the workers that are there at first."""
    quick = RayServe(target=1.0, up_delay=options.up_delay, down_delay=options.down_delay)
    return {
        OURS: (first, Ours(first, options)),
        MEAN: (mean, Fixed(mean)),
        PEAK: (peak, Fixed(peak)),
        RAY: (first, RayServe()),
        RAY_ONE: (first, RayServe(target=1.0)),
        QUICK_RAY: (first, quick),
    }


def above(outcome: Outcome) -> float:
    """Percent of what was needed."""
    return 100 * outcome.above / max(outcome.worker_seconds - outcome.above, 1.0)


def missed(pattern: Pattern, outcome: Outcome) -> float:
    """Percent of the time."""
    return 100 * outcome.missed / pattern.seconds


def p99(outcome: Outcome) -> float:
    """Seconds."""
    return sorted(outcome.waits)[int(len(outcome.waits) * 0.99)] if outcome.waits else 0.0


def _table(pattern: Pattern, found: Mapping[str, Outcome]) -> Table:
    rows = [
        (
            name,
            figure(one.worker_seconds / pattern.seconds),
            figure(above(one)),
            figure(missed(pattern, one)),
            figure(p99(one)),
            str(one.decisions),
        )
        for name, one in found.items()
    ]
    title = f"{pattern.name}: {len(found[OURS].waits):,} requests in {pattern.seconds / 3600:g} h"
    return Table(title, COLUMNS, rows)


def _bars(pattern: Pattern, found: Mapping[str, Outcome]) -> Bars:
    panels = {
        "above what was needed, %": {name: [above(one)] for name, one in found.items()},
        "time above target, %": {name: [missed(pattern, one)] for name, one in found.items()},
        "p99 queue time, s": {name: [p99(one)] for name, one in found.items()},
    }
    title = f"Rules for the number of workers: {pattern.name}"
    return Bars(
        f"autoscaling-{pattern.name}", title, "", panels, caption="What is paid for too many workers, and for too few."
    )


def _lines(pattern: Pattern, found: Mapping[str, Outcome], needed: Callable[[float], int]) -> Lines:
    every = max(int(pattern.seconds / STEP / 150), 1)
    points = [*found[OURS].workers][::every]
    hours = {name: {now / 3600: found[name].workers[now] for now in points} for name in (OURS, RAY_ONE)}
    hours["needed"] = {now / 3600: [float(needed(now))] for now in points}
    title = f"Workers over time: {pattern.name}"
    return Lines(
        f"autoscaling-{pattern.name}-workers",
        title,
        "hours",
        "workers",
        hours,
        caption="How closely a rule follows the need; a worker takes its time to load.",
    )
