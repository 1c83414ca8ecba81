"""`scripts/gpu-check`: TorchServe's handlers on this machine's GPUs, on one page."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.e2e.server import new_store, run_server
from tests.gpu_check import machine, page
from tests.gpu_check.bench import SIMULATED, Bench
from tests.gpu_check.cards import Cards, cards
from tests.gpu_check.checks import CHECKS

PROPERTIES = "metric_time_interval=1\n"
BENCHMARK = "utilisation"
LIMIT = 2400.0
"""Seconds that it may take."""


def main() -> int:
    """1 where something failed."""
    parser = argparse.ArgumentParser(prog="scripts/gpu-check", description=__doc__)
    parser.add_argument(
        "--simulated", action="store_true", help="GPUs that exist only as numbers, and torch on the CPU"
    )
    simulated: bool = parser.parse_args().simulated
    began = time.monotonic()
    with nullcontext() if simulated else cards() as found:
        _say("# gpu-check", "", *machine.lines(found), "", *page.HEAD)
        outcomes = [_told(outcome) for outcome in _checked(found)]
    _say("", f"{page.summary(outcomes)}, in {time.monotonic() - began:.0f} s. Send this page to the project.", "")
    benchmark = page.tried(f"python -m benchmarks {BENCHMARK}", _benchmark, _why_not(simulated, outcomes))
    _say(f"## {benchmark.check}: {benchmark.result}", "", benchmark.figures)
    return int(page.has_failed([*outcomes, benchmark]))


def _checked(found: Cards | None) -> Iterator[page.Outcome]:
    """Each outcome as soon as it is there. A server that does not start, or leaves something behind, is a failure."""
    with tempfile.TemporaryDirectory(prefix="msx-gpu-check-") as name:
        new_store(Path(name))
        try:
            properties = PROPERTIES + ("" if found else SIMULATED)
            with run_server(Path(name), properties=properties, fork=False) as server:  # as a user starts it
                bench = Bench(server, found)
                yield from (page.tried(name, check, bench) for name, check in CHECKS.items())
        except AssertionError as error:
            yield page.Outcome("the server", page.FAILED, str(error))


def _told(outcome: page.Outcome) -> page.Outcome:
    _say(outcome.row())
    return outcome


def _why_not(simulated: bool, outcomes: Sequence[page.Outcome]) -> str:
    """The reason why the benchmark is not run, or nothing. The first check says whether torch computes on a GPU."""
    if simulated:
        return "GPUs are simulated."
    return "" if outcomes[0].result == page.PASSED else "torch does not compute on a GPU here."


def _benchmark(why_not: str) -> str:
    if why_not:
        raise page.NotRunError(why_not)
    command = [sys.executable, "-m", "benchmarks", BENCHMARK]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=False)
    if done.returncode:
        raise page.FailedError(f"It ended with {done.returncode}.\n\n{done.stdout}")
    return done.stdout.strip()


def _say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
