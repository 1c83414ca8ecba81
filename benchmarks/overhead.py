"""What a request costs beside the model: echo, against mosec and TorchServe in the same run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import click

from benchmarks import _mosec, _torchserve
from benchmarks._client import Connection
from benchmarks._command import benchmark, progress
from benchmarks._contest import Contestant, play_round, rotated, table, targets
from benchmarks._server import serve
from benchmarks._table import Report
from benchmarks._venv import NotInstalled
from benchmarks._wrk import wrk

QUICK = ("--rounds", "2", "--seconds", "1", "--warm-up", "1")
TARGET_CONNECTIONS = 32
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 1\n"
MOSEC, TORCHSERVE = f"mosec {_mosec.VERSION}", f"TorchServe {_torchserve.VERSION}"
TARGETS = {MOSEC: 0.5, TORCHSERVE: 5.0}
"""Times the peer's requests per second."""

OURS = ("msx", "msx, tokens on")


Joins = Callable[[], AbstractContextManager[Contestant]]


@benchmark("overhead")
@click.option("--rounds", default=7, type=click.IntRange(1), help="Every contestant has its turn in each.")
@click.option("--seconds", default=4.0, type=click.FloatRange(1), help="Of each turn.")
@click.option("--warm-up", default=8.0, type=click.FloatRange(1), help="Seconds, once a contestant, not counted.")
@click.option("--connections", "-c", multiple=True, default=(32, 1), type=click.IntRange(1), help="May be repeated.")
@click.option("--body", default=128, type=click.IntRange(0), help="Bytes.")
@click.option("--peer/--no-peer", default=True, help="Compare with mosec and TorchServe.")
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
            contestants += [one for join in (_mosec_joins, _torchserve_joins) for one in _peer(stack, join, report)]
        for contestant in contestants:
            asyncio.run(_check_echo(contestant, body))
            load.run(contestant.address, contestant.path, connections=max(connections), seconds=warm_up)
        for number in range(rounds):
            play_round(load, rotated(contestants, number), connections, seconds)
            progress(f"overhead: round {number + 1} of {rounds}")
        report.notes.append(f"Load: {load.version}, 1 thread, {rounds} rounds of {seconds:g} s, {body} bytes a request")
    for count in connections:
        title = f"Echo, {count} connection{'s' if count > 1 else ''}"
        report.tables.append(table(title, contestants, count, [*TARGETS]))
    if TARGET_CONNECTIONS in connections:
        what = f"{TARGET_CONNECTIONS} connections"
        for name, least in TARGETS.items():
            report.targets += targets(contestants, TARGET_CONNECTIONS, OURS, name, least, what)


def _ours(stack: ExitStack, name: str, *, tokens: bool) -> Contestant:
    server = stack.enter_context(serve("echo", CONFIG, tokens=tokens))
    return Contestant(name, server.address, "/predictions/echo", server.process.pid)


@contextmanager
def _mosec_joins() -> Iterator[Contestant]:
    with _mosec.serve_echo() as (address, pid):
        yield Contestant(MOSEC, address, "/inference", pid)


@contextmanager
def _torchserve_joins() -> Iterator[Contestant]:
    with _torchserve.serve_echo() as peer:
        yield Contestant(TORCHSERVE, peer.http, f"/predictions/{_torchserve.MODEL}", peer.pid)


def _peer(stack: ExitStack, join: Joins, report: Report) -> list[Contestant]:
    try:
        return [stack.enter_context(join())]
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
