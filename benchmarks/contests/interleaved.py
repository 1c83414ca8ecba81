"""Two servers that have load in turns of a tenth of a second.

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

import msgspec

from benchmarks.contests.contest import Contestant, LoadProgram
from benchmarks.load.result import Result
from benchmarks.load.started import StartedLoad

SLICE = 0.1
"""Seconds; a divisor of a second."""
GAP = 0.01
"""Seconds of a slice in which the requests of the other load that are still in flight are answered."""


def play_interleaved(
    pair: Sequence[Contestant], loads: Sequence[LoadProgram], connections: int, seconds: float
) -> None:
    """A turn of about `seconds`, at least one, for both. The tails of their latencies say little: requests in flight
    wait while a load is stopped. Raises click.ClickException when an answer was an error."""
    whole = max(round(2 * seconds), 2)
    with cores_apart(pair):
        before = [one.processor() for one in pair]
        times = [0.0 for _ in pair]
        started = []
        with ExitStack() as stack:
            for one, load in zip(pair, loads, strict=True):
                begun = load.start(one.address, one.path, connections=connections, seconds=whole)
                started.append(stack.enter_context(begun))
                times[len(started) - 1] += let_run(started[-1])
            for number in range(round(whole / SLICE) - len(pair)):
                times[number % 2] += let_run(started[number % 2])
            time.sleep(SLICE)  # the time of the second one is over as well
            results = [end(one) for one in started]
    for one, result, ran, used in zip(pair, results, times, before, strict=True):
        one.add(msgspec.structs.replace(result, micros=round(ran * 1e6)), connections, used)


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
def cores_apart(pair: Sequence[Contestant]) -> Iterator[None]:
    """Keeps the servers on the first core meanwhile, and their workers, and this process with its loads, on the others:
    where the kernel puts three busy processes on two cores makes more of a difference than most changes."""
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        yield
        return
    others = sorted(cores - {min(cores)})
    families = [one.family() for one in pair]
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
