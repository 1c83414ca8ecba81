"""From `msx-serve --start` to the first answer, and what the processes weigh."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import click
import psutil

from benchmarks._client import Address, Connection
from benchmarks._command import benchmark, progress
from benchmarks._figures import figure, median, spread
from benchmarks._server import Server, new_store, start, stop
from benchmarks._table import Report, Table, Target

QUICK = ("--runs", "1", "--requests", "100")
PATH = "/predictions/echo"
FIRST_ANSWER, FRONTEND, WORKER = 1.5, 80.0, 45.0
"""Targets: s, MB, MB (10^6 bytes)."""


@dataclass(frozen=True)
class Run:
    """Seconds and megabytes (10^6 bytes). `unique` is what no other process shares."""

    command: float
    first_answer: float
    stop: float
    frontend: float
    frontend_unique: float
    worker: float
    worker_unique: float


@benchmark("start")
@click.option("--runs", default=9, type=click.IntRange(1), help="Counted ones; one before them warms the disk cache.")
@click.option("--requests", default=1000, type=click.IntRange(1), help="Before memory is read.")
@click.option("--connections", default=32, type=click.IntRange(1), help="That these requests come by.")
@click.option("--workers", default=1, type=click.IntRange(1))
@click.option("--tokens/--no-tokens", default=True, help="Token authorization, on by default as in the server.")
def main(report: Report, runs: int, requests: int, connections: int, workers: int, tokens: bool) -> None:
    """Start a server with an echo model in a fresh store, ask it, weigh it, stop it."""
    measured = []
    for number in range(runs + 1):
        measured.append(_run(requests, connections, workers, tokens=tokens))
        progress(f"start: {'warm-up' if number == 0 else f'run {number} of {runs}'}")
    counted = measured[1:]
    report.notes.append(f"Runs: {runs}, {workers} worker(s), memory after {requests:,} requests; MB are 10^6 bytes")
    report.tables.append(_table(counted))
    report.targets += [
        _target("start to first answer, s", [run.first_answer for run in counted], FIRST_ANSWER),
        _target("frontend resident, MB", [run.frontend for run in counted], FRONTEND),
        _target("echo worker resident, MB", [run.worker for run in counted], WORKER),
    ]


def _run(requests: int, connections: int, workers: int, *, tokens: bool) -> Run:
    with new_store("echo", f"minWorkers: {workers}\nmaxWorkers: {workers}\n") as store:
        began = time.monotonic()
        server = start(store, "echo", tokens=tokens)
        try:
            returned = time.monotonic()
            asyncio.run(_first_answer(server.address))
            answered = time.monotonic()
            asyncio.run(_send(server.address, requests, connections))
            weights = _weigh(server)
        finally:
            stopping = time.monotonic()
            stop(server)
        return Run(returned - began, answered - began, time.monotonic() - stopping, *weights)


def _weigh(server: Server) -> tuple[float, float, float, float]:
    """The frontend and the heaviest worker, resident and unique each."""
    frontend = _megabytes(server.process)
    workers = [_megabytes(process) for process in server.workers()]
    return (*frontend, *max(workers))


def _megabytes(process: psutil.Process) -> tuple[float, float]:
    memory = process.memory_full_info()
    return memory.rss / 1e6, memory.uss / 1e6


async def _first_answer(address: Address) -> None:
    """A client that asks again while the model is loading; the server lets such requests wait."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        connection = await Connection.open(address)
        answer = await connection.post(PATH, b"first")
        connection.leave()
        if answer == (200, b"first"):
            return
        await asyncio.sleep(0.005)
    raise click.ClickException(f"No answer within 30 s; the last was {answer.status} {answer.body[:300]!r}")


async def _send(address: Address, requests: int, connections: int) -> None:
    shares = [requests // connections + (number < requests % connections) for number in range(connections)]
    await asyncio.gather(*(_one_connection(address, share) for share in shares))


async def _one_connection(address: Address, requests: int) -> None:
    connection = await Connection.open(address)
    for _ in range(requests):
        answer = await connection.post(PATH, b"x" * 128)
        if answer.status != 200:
            raise click.ClickException(f"A request failed: {answer.status} {answer.body[:300]!r}")
    connection.leave()


def _table(runs: Sequence[Run]) -> Table:
    columns = {
        "msx-serve --start returns, s": [run.command for run in runs],
        "first answer, s": [run.first_answer for run in runs],
        "msx-serve --stop returns, s": [run.stop for run in runs],
        "frontend resident, MB": [run.frontend for run in runs],
        "… of which its own": [run.frontend_unique for run in runs],
        "echo worker resident, MB": [run.worker for run in runs],
        "… of which its own ": [run.worker_unique for run in runs],
    }
    rows = [(what.strip(), figure(median(values)), spread(values)) for what, values in columns.items()]
    return Table("Start, stop and memory", ("what", "median", "lowest – highest"), rows)


def _target(what: str, values: Sequence[float], limit: float) -> Target:
    middle = median(values)
    return Target(what, figure(middle), f"< {limit:g}", middle < limit)
