"""Two servers that have load in turns of a tenth of a second, or of the load's shortest run.

The rate of a machine, virtual ones above all, may change by a third from one second to the next, and with it the ratio
of two turns that follow each other. Turns so short meet the same machine: the loads are two programs, one of which is
stopped (SIGSTOP) while the other one runs.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Protocol

import msgspec
import psutil

from benchmarks.contests.contest import Contestant, Load, LoadProgram
from benchmarks.load.result import Result
from benchmarks.load.started import StartedLoad
from benchmarks.reports.figures import median

SLICE = 0.1
"""Seconds; a divisor of a second."""
GAP = 0.01
"""Seconds of a slice in which the requests of the other load that are still in flight are answered."""


def play_interleaved(
    pair: Sequence[Contestant], loads: Sequence[LoadProgram], connections: int, seconds: float
) -> None:
    """A turn of about `seconds`, at least one, for both. The tails of their latencies say little: requests in flight
    wait while a load is stopped. Raises click.ClickException when an answer was an error."""
    starts = [
        partial(load.start, one.address, one.path, connections=connections)
        for one, load in zip(pair, loads, strict=True)
    ]
    with cores_apart([one.family() for one in pair]):
        before = [one.processor() for one in pair]
        results = run_in_slices(starts, seconds)
    for one, result, used in zip(pair, results, before, strict=True):
        one.add(result, connections, used)


class Start(Protocol):
    """Starts a load of so many seconds."""

    def __call__(self, *, seconds: float) -> StartedLoad: ...


def run_in_slices(starts: Sequence[Start], seconds: float) -> list[Result]:
    """Run two loads of about `seconds` each, at least one, in turns of a slice. A result has the time that its load ran
    for. Raises click.ClickException when an answer was an error."""
    whole = max(round(2 * seconds), 2)
    times = [0.0 for _ in starts]
    started: list[StartedLoad] = []
    with ExitStack() as stack:
        for number, start in enumerate(starts):
            started.append(stack.enter_context(start(seconds=whole)))
            times[number] += let_run(started[-1])
        for number in range(round(whole / SLICE) - len(starts)):
            times[number % 2] += let_run(started[number % 2])
        time.sleep(SLICE)  # the time of the second one is over as well
        results = [end(one) for one in started]
    return [msgspec.structs.replace(one, micros=round(ran * 1e6)) for one, ran in zip(results, times, strict=True)]


def play_alternating(pair: Sequence[Contestant], loads: Sequence[Load], connections: int, seconds: float) -> None:
    """A turn of `seconds` for both, in short runs of one after the other: for loads that are no programs.
    Raises click.ClickException when an answer was wrong."""
    results: list[list[Result]] = [[] for _ in pair]
    with cores_apart([one.family() for one in pair]):
        before = [one.processor() for one in pair]
        while sum(result.micros for result in results[0]) < seconds * 1e6:
            for one, load, found in zip(pair, loads, results, strict=True):
                found.append(one.run(load, connections, SLICE))
    for one, found, used in zip(pair, results, before, strict=True):
        one.add(together(found), connections, used)


def together(results: Sequence[Result]) -> Result:
    """Return one result of several runs; its latencies are the medians of theirs."""
    p50, p99 = (round(median(values)) for values in zip(*((one.p50, one.p99) for one in results), strict=True))
    sums = (sum(one.requests for one in results), sum(one.micros for one in results))
    return Result(*sums, p50, p99, sum(one.errors for one in results))


def let_run(load: StartedLoad) -> float:
    """Lets it run for a slice. Returns for how many seconds it did."""
    time.sleep(GAP)
    os.kill(load.process.pid, signal.SIGCONT)
    began = time.monotonic()
    time.sleep(SLICE - GAP)
    os.kill(load.process.pid, signal.SIGSTOP)
    return time.monotonic() - began


def end(load: StartedLoad) -> Result:
    os.kill(load.process.pid, signal.SIGCONT)
    return load.result()


@contextmanager
def cores_apart(families: Sequence[Sequence[psutil.Process]]) -> Iterator[None]:
    """Keep the servers, the first process of each family, on the first core meanwhile, and their workers, and this
    process with its loads, on the others: where the kernel puts three busy processes on two cores makes more of a
    difference than most changes."""
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        yield
        return
    others = sorted(cores - {min(cores)})
    try:
        for server, *workers in families:
            server.cpu_affinity([min(cores)])
            for process in workers:
                process.cpu_affinity(others)
        os.sched_setaffinity(0, others)
        yield
    finally:
        os.sched_setaffinity(0, cores)
        for process in (process for family in families for process in family):
            process.cpu_affinity(sorted(cores))
