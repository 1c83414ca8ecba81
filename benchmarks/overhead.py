"""What a request costs beside the model: echo, against mosec in the same run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import click
import psutil

from benchmarks import _mosec
from benchmarks._client import Address, Connection
from benchmarks._command import benchmark, progress
from benchmarks._figures import figure, median, paired_ratio, spread
from benchmarks._server import serve
from benchmarks._table import Report, Table, Target
from benchmarks._venv import NotInstalled
from benchmarks._wrk import Result, Wrk, wrk

QUICK = ("--rounds", "2", "--seconds", "1", "--warm-up", "1")
TARGET = 0.5
TARGET_CONNECTIONS = 32
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 1\n"
PEER = f"mosec {_mosec.VERSION}"
OURS = ("msx", "msx, tokens on")


@dataclass(frozen=True)
class Turn:
    result: Result
    processor: list[float]
    """µs of processor time a request, by process of the server, the busiest first: a busy machine changes it little."""


@dataclass
class Contestant:
    name: str
    address: Address
    path: str
    pid: int
    turns: dict[int, list[Turn]] = field(default_factory=dict)
    """By connections; one a round."""

    def rates(self, connections: int) -> list[float]:
        return [turn.result.per_second for turn in self.turns[connections]]

    def take(self, load: Wrk, connections: int, seconds: float) -> None:
        before = self._processor()
        result = load.run(self.address, self.path, connections=connections, seconds=seconds)
        spent = [used - before.get(pid, 0.0) for pid, used in self._processor().items()]
        turn = Turn(result, sorted((seconds * 1e6 / result.requests for seconds in spent), reverse=True))
        self.turns.setdefault(connections, []).append(turn)

    def _processor(self) -> dict[int, float]:
        """Process id to seconds."""
        server = psutil.Process(self.pid)
        times = {process.pid: process.cpu_times() for process in [server, *server.children(recursive=True)]}
        return {pid: time.user + time.system for pid, time in times.items()}


@benchmark("overhead")
@click.option("--rounds", default=7, type=click.IntRange(1), help="Every contestant has its turn in each.")
@click.option("--seconds", default=4.0, type=click.FloatRange(1), help="Of each turn.")
@click.option("--warm-up", default=2.0, type=click.FloatRange(1), help="Seconds, once a contestant, not counted.")
@click.option("--connections", "-c", multiple=True, default=(32, 1), type=click.IntRange(1), help="May be repeated.")
@click.option("--body", default=128, type=click.IntRange(0), help="Bytes.")
@click.option("--peer/--no-peer", default=True, help="Compare with mosec.")
def main(
    report: Report, rounds: int, seconds: float, warm_up: float, connections: tuple[int, ...], body: int, peer: bool
) -> None:
    """Requests per second of an echo model: batchSize 1, one worker, load by wrk.

    All servers run for the whole time, but only one has load at a time; they take turns in rounds, so that a
    disturbance meets all of them. The ratio is the median of the rounds' ratios.
    """
    with ExitStack() as stack:
        load = stack.enter_context(wrk(body))
        contestants = [_ours(stack, name, tokens=tokens) for name, tokens in zip(OURS, (False, True), strict=True)]
        if peer:
            contestants += _peer(stack, report)
        for contestant in contestants:
            asyncio.run(_check_echo(contestant, body))
            load.run(contestant.address, contestant.path, connections=max(connections), seconds=warm_up)
        for number in range(rounds):
            _round(load, _rotated(contestants, number), connections, seconds)
            progress(f"overhead: round {number + 1} of {rounds}")
        report.notes.append(f"Load: {load.version}, 1 thread, {rounds} rounds of {seconds:g} s, {body} bytes a request")
    report.tables += [_table(contestants, count) for count in connections]
    report.targets += _targets(contestants, connections)


def _ours(stack: ExitStack, name: str, *, tokens: bool) -> Contestant:
    server = stack.enter_context(serve("echo", CONFIG, tokens=tokens))
    return Contestant(name, server.address, "/predictions/echo", server.process.pid)


def _peer(stack: ExitStack, report: Report) -> list[Contestant]:
    try:
        address, pid = stack.enter_context(_mosec.serve_echo())
        return [Contestant(PEER, address, "/inference", pid)]
    except NotInstalled as missing:
        report.notes.append(f"No comparison: {missing}")
        return []


async def _check_echo(contestant: Contestant, size: int) -> None:
    body = b"x" * size
    connection = await Connection.open(contestant.address)
    answer = await connection.post(contestant.path, body)
    connection.leave()
    if answer != (200, body):
        raise click.ClickException(f"{contestant.name} does not echo: {answer.status} {answer.body[:200]!r}")


def _round(load: Wrk, contestants: Sequence[Contestant], connections: Sequence[int], seconds: float) -> None:
    for count in connections:
        for contestant in contestants:
            contestant.take(load, count, seconds)


def _rotated(contestants: list[Contestant], by: int) -> list[Contestant]:
    """Nobody is always the first after a pause."""
    start = by % len(contestants)
    return contestants[start:] + contestants[:start]


def _table(contestants: Sequence[Contestant], connections: int) -> Table:
    peer = next((one for one in contestants if one.name == PEER), None)
    rows = []
    for contestant in contestants:
        rates, turns = contestant.rates(connections), contestant.turns[connections]
        p50 = median([turn.result.p50 for turn in turns]) / 1000
        p99 = median([turn.result.p99 for turn in turns]) / 1000
        row = [contestant.name, figure(median(rates)), spread(rates), figure(p50), figure(p99), _processor(turns)]
        rows.append([*row, _ratio(rates, peer.rates(connections)) if peer else "–"])
    columns = ("server", "requests/s", "lowest – highest", "p50 ms", "p99 ms", "CPU µs/request", f"of {PEER}")
    return Table(f"Echo, {connections} connection{'s' if connections > 1 else ''}", columns, rows)


def _processor(turns: Sequence[Turn]) -> str:
    """The sum, and its parts by process; those that take next to nothing are left out."""
    parts = [median(part) for part in zip(*(turn.processor for turn in turns), strict=False)]
    shown = [f"{part:.0f}" for part in parts if part >= 0.02 * sum(parts)]
    return f"{sum(parts):.0f} = {' + '.join(shown)}" if len(shown) > 1 else f"{sum(parts):.0f}"


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    middle, low, high = paired_ratio(ours, theirs)
    return f"{middle:.2f} ({low:.2f} – {high:.2f})"


def _targets(contestants: Sequence[Contestant], connections: Sequence[int]) -> list[Target]:
    by_name = {one.name: one for one in contestants}
    if PEER not in by_name or TARGET_CONNECTIONS not in connections:
        return []
    theirs = by_name[PEER].rates(TARGET_CONNECTIONS)
    what = f"requests/s of {PEER}, {TARGET_CONNECTIONS} connections"
    middles = {name: paired_ratio(by_name[name].rates(TARGET_CONNECTIONS), theirs)[0] for name in OURS}
    return [
        Target(f"{name}: {what}", f"{middle:.2f}", f"≥ {TARGET:g}", middle >= TARGET)
        for name, middle in middles.items()
    ]


if __name__ == "__main__":
    main()
