"""A client disconnects: how much its worker still computes for it."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.load.client import Address, Connection
from benchmarks.reports.figures import figure, median
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import serve

QUICK = ("--runs", "3")
LIMIT = 30.0
"""Seconds for one run."""
READ = 3
"""Tokens that the client reads before it leaves."""
MOST = 1
CONFIG = "minWorkers: 1\nmaxWorkers: 1\n"
STREAMS = {"tokens": "generator", "tokens_async": "async generator"}
WAITS = {"waits_async": "async, its task cancelled", "waits": "synchronous, context.cancelled true"}


@dataclass(frozen=True)
class Run:
    tokens: int
    """Tokens made after the client had disconnected."""
    seconds: float
    """Seconds from the client's disconnect to the handler's end."""


@benchmark("cancel")
@click.option("--runs", default=20, type=click.IntRange(1), help="For each kind of handler.")
@click.option("--pause", default=0.02, type=click.FloatRange(0.001), help="Seconds that a token takes.")
def main(report: Report, runs: int, pause: float) -> None:
    """A client closes its connection in the middle of a stream, and of a request that does not stream.

    The handler notes the instant of every token and of its end; worker and client read the same clock.
    """
    streams = {name: _measure(name, runs, _stream(name, pause)) for name in STREAMS}
    waits = {name: _measure(name, runs, _wait(name)) for name in WAITS}
    report.notes.append(f"Runs: {runs} for each kind of handler; a token takes {figure(pause * 1000)} ms")
    report.tables += [_tokens(streams), _times(waits)]
    for name, some in streams.items():
        most = max(run.tokens for run in some)
        report.targets.append(
            Target(f"{STREAMS[name]}: tokens after the client left", str(most), f"≤ {MOST}", most <= MOST)
        )


def _measure(service: str, runs: int, leave: Callable[[Address, Path], Awaitable[float]]) -> list[Run]:
    with serve(service, CONFIG) as server, tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder:
        marks = [Path(folder, str(number)) for number in range(runs)]
        found = [asyncio.run(asyncio.wait_for(_one(server.address, leave, mark), LIMIT)) for mark in marks]
    progress(f"cancel: {service}, {runs} runs")
    return found


async def _one(address: Address, leave: Callable[[Address, Path], Awaitable[float]], mark: Path) -> Run:
    left = await leave(address, mark)
    while not (end := _instants(mark, "end")):
        await asyncio.sleep(0.002)
    return Run(sum(instant > left for instant in _instants(mark, "token")), end[0] - left)


def _stream(service: str, pause: float) -> Callable[[Address, Path], Awaitable[float]]:
    async def leave(address: Address, mark: Path) -> float:
        order = {"mark": str(mark), "pause": pause, "count": 10_000}
        connection = await Connection.open(address)
        seen = 0
        async for _ in connection.stream(f"/predictions/{service}", json.dumps(order).encode()):
            seen += 1
            if seen == READ:
                return _leave(connection)
        raise click.ClickException(f"The stream of {service} ended after {seen} chunks.")

    return leave


def _wait(service: str) -> Callable[[Address, Path], Awaitable[float]]:
    async def leave(address: Address, mark: Path) -> float:
        order = {"mark": str(mark), "seconds": LIMIT}
        connection = await Connection.open(address)
        connection.send(f"/predictions/{service}", json.dumps(order).encode())
        while not _instants(mark, "begin"):
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.05)  # well into it
        return _leave(connection)

    return leave


def _leave(connection: Connection) -> float:
    connection.leave()
    return time.monotonic()


def _instants(mark: Path, kind: str) -> list[float]:
    if not mark.exists():
        return []
    lines = mark.read_text().splitlines(keepends=True)
    return [float(line.split()[1]) for line in lines if line.startswith(kind + " ") and line.endswith("\n")]


def _tokens(found: dict[str, list[Run]]) -> Table:
    rows = []
    for name, runs in found.items():
        tokens = [run.tokens for run in runs]
        counts = [str(tokens.count(number)) for number in range(MOST + 1)] + [str(sum(n > MOST for n in tokens))]
        rows.append((STREAMS[name], *counts, str(max(tokens)), *_milliseconds(runs)))
    columns = ("handler", "none more", "1 more", "several", "most", "ended after, ms", "slowest")
    return Table("Streams: tokens made after the client had left", columns, rows)


def _times(found: dict[str, list[Run]]) -> Table:
    rows = [(WAITS[name], *_milliseconds(runs)) for name, runs in found.items()]
    return Table("Requests that do not stream", ("handler", "ended after, ms", "slowest"), rows)


def _milliseconds(runs: Sequence[Run]) -> tuple[str, str]:
    times = [run.seconds * 1000 for run in runs]
    return figure(median(times)), figure(max(times))
