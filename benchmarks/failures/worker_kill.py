"""A worker is killed under load: what each client sees, when, and how soon the model is whole again."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.load.client import Answer, Connection
from benchmarks.reports.figures import figure, median, spread
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, serve

QUICK = ("--runs", "1", "--requests", "20")
PATH = "/predictions/work"
LIMIT = 60.0
"""Seconds for one run."""
TOLD_WITHIN, LOAD_PLUS = 1.0, 1.0
BEFORE, ERROR, BROKEN = "answered before the kill", "an error", "connection broken"
SURVIVOR, SUCCESSOR = "answered by the other worker", "answered by the new worker"
GROUPS = (BEFORE, ERROR, BROKEN, SURVIVOR, SUCCESSOR)


@dataclass
class Outcome:
    """`after` is in seconds from the kill."""

    group: str
    after: float
    text: str = ""


@dataclass
class Run:
    outcomes: list[Outcome] = field(default_factory=list)
    served_again: float = 0.0
    """Seconds from the kill to the first answer of the new worker."""

    def after(self, group: str) -> list[float]:
        return [outcome.after for outcome in self.outcomes if outcome.group == group]


@benchmark("worker_kill")
@click.option("--runs", default=5, type=click.IntRange(1), help="For each number of workers.")
@click.option("--requests", default=100, type=click.IntRange(2, 100), help="At once; the queue takes 100.")
@click.option("--work", default=0.05, type=click.FloatRange(0.001), help="Seconds that each request takes.")
@click.option("--load", default=0.5, type=click.FloatRange(0), help="Seconds that the model takes to load.")
@click.option("--workers", multiple=True, default=(1, 2), type=click.IntRange(1), help="May be repeated.")
def main(report: Report, runs: int, requests: int, work: float, load: float, workers: tuple[int, ...]) -> None:
    """SIGKILL of a worker when half of its concurrent requests are answered.

    Each request has a connection of its own, opened before. What was running on the worker gets an error at once;
    what was queued is served by another worker or by the next one.
    """
    found = {}
    for count in workers:
        config = f"minWorkers: {count}\nmaxWorkers: {count}\nworkSeconds: {work}\nloadSeconds: {load}\n"
        with serve("work", config) as server:
            found[count] = [_run(server, requests, work, f"{count} worker(s), run {n + 1}") for n in range(runs)]
    report.notes.append(f"Runs: {runs} for each number of workers; a request takes {figure(work * 1000)} ms of work")
    report.tables += [_clients(found), _texts(found), _recovery(found, load)]
    report.targets += [target for count, some in found.items() for target in _targets(count, some, load)]


def _run(server: Server, requests: int, work: float, what: str) -> Run:
    run = asyncio.run(asyncio.wait_for(_Kill(server, requests, work).run(), LIMIT))
    progress(f"worker_kill: {what}")
    return run


class _Kill:
    """One run."""

    def __init__(self, server: Server, requests: int, work: float) -> None:
        self._server, self._requests, self._work = server, requests, work
        self._run = Run()
        self._killed = 0.0
        self._victim = 0
        self._answered = 0
        self._old: set[int] = set()

    async def run(self) -> Run:
        self._old = await self._settled()
        self._victim = min(self._old)
        connections = [await Connection.open(self._server.address) for _ in range(self._requests)]
        await asyncio.gather(*(self._client(connection) for connection in connections))
        self._run.served_again = min(self._run.after(SUCCESSOR), default=0.0) or await self._until_served()
        return self._run

    async def _settled(self) -> set[int]:
        """The workers' process ids, when all of them have answered."""
        answered: set[int] = set()
        while not (pids := {process.pid for process in self._server.workers()}) or pids - answered:
            answered |= {_pid(answer) for answer in await asyncio.gather(*(self._ask() for _ in range(len(pids) * 2)))}
        return pids

    async def _client(self, connection: Connection) -> None:
        try:
            answer = await connection.post(PATH, b"x")
        except ConnectionError as error:
            self._run.outcomes.append(Outcome(BROKEN, time.monotonic() - self._killed, str(error)))
            return
        finally:
            connection.leave()
        self._count_down()
        self._run.outcomes.append(self._outcome(answer, time.monotonic()))

    def _count_down(self) -> None:
        """Kills after half of the requests, in the middle of the next request's work."""
        self._answered += 1
        if self._answered == self._requests // 2:
            asyncio.get_running_loop().call_later(self._work / 2, self._kill)

    def _kill(self) -> None:
        self._killed = time.monotonic()
        os.kill(self._victim, signal.SIGKILL)

    def _outcome(self, answer: Answer, now: float) -> Outcome:
        if not self._killed:
            return Outcome(BEFORE, 0.0)
        after = now - self._killed
        if answer.status != 200:
            return Outcome(ERROR, after, f"{answer.status}: {json.loads(answer.body)['message']}")
        return Outcome(SURVIVOR if _pid(answer) in self._old else SUCCESSOR, after)

    async def _until_served(self) -> float:
        """The new worker started after the last request: asks until it answers."""
        while True:
            answers = await asyncio.gather(*(self._ask() for _ in range(len(self._old))))
            if {_pid(answer) for answer in answers} - self._old - {0}:
                return time.monotonic() - self._killed

    async def _ask(self) -> Answer:
        connection = await Connection.open(self._server.address)
        try:
            return await connection.post(PATH, b"x")
        finally:
            connection.leave()


def _pid(answer: Answer) -> int:
    """0 for an error."""
    return int(json.loads(answer.body)["pid"]) if answer.status == 200 else 0


def _clients(found: dict[int, list[Run]]) -> Table:
    rows = []
    for workers, runs in found.items():
        for group in GROUPS:
            counts = [len(run.after(group)) for run in runs]
            times = [after * 1000 for run in runs for after in run.after(group)]
            shown = ("–", "–") if group == BEFORE or not times else (figure(median(times)), figure(max(times)))
            rows.append((str(workers), group, spread(counts), *shown))
    columns = ("workers", "clients that saw", "a run", "median ms after the kill", "slowest")
    return Table("What the clients saw", columns, rows)


def _texts(found: dict[int, list[Run]]) -> Table:
    texts = Counter(
        (workers, re.sub(r"pid \d+", "pid N", outcome.text))
        for workers, runs in found.items()
        for run in runs
        for outcome in run.outcomes
        if outcome.text
    )
    rows = [(str(workers), text, str(count)) for (workers, text), count in texts.items()]
    return Table("The errors, in all runs", ("workers", "text", "times"), rows)


def _recovery(found: dict[int, list[Run]], load: float) -> Table:
    rows = []
    for workers, runs in found.items():
        times = [run.served_again for run in runs]
        rows.append((str(workers), figure(load), figure(median(times)), figure(max(times)), figure(max(times) - load)))
    columns = ("workers", "load time, s", "first answer of the new worker, s", "slowest", "slowest beyond load time")
    return Table("Whole again", columns, rows)


def _targets(workers: int, runs: Sequence[Run], load: float) -> list[Target]:
    told = max((after for run in runs for group in (ERROR, BROKEN) for after in run.after(group)), default=0.0)
    broken = sum(len(run.after(BROKEN)) for run in runs)
    again = max(run.served_again for run in runs)
    name = f"{workers} worker{'s' if workers > 1 else ''}"
    return [
        Target(f"{name}: error after, s", figure(told), f"< {TOLD_WITHIN:g}", told < TOLD_WITHIN),
        Target(f"{name}: clients without a cause", str(broken), "0", broken == 0),
        Target(f"{name}: served again after, s", figure(again), f"< {load + LOAD_PLUS:g}", again < load + LOAD_PLUS),
    ]
