"""One start of a server with an echo model: how long it takes, and what its processes weigh."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

import click
import psutil

from benchmarks.load.client import Address, Connection
from benchmarks.servers.family import supervisor_of, wait_small
from benchmarks.servers.msx import Server, new_store, start, stop

PATH = "/predictions/echo"


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
    supervisor: float | None
    """None where there is none, and where its memory was not waited for."""


def run_once(
    requests: int, connections: int, workers: int, *, tokens: bool, program: Path | None = None, lasts: bool = False
) -> Run:
    """`program` is an `msx-serve` of another checkout. `lasts`: until the supervisor has the memory that it keeps."""
    with new_store("echo", f"minWorkers: {workers}\nmaxWorkers: {workers}\n") as store:
        began = time.monotonic()
        server = start(store, "echo", tokens=tokens, program=program)
        try:
            returned = time.monotonic()
            asyncio.run(_first_answer(server.address))
            answered = time.monotonic()
            asyncio.run(_send(server.address, requests, connections))
            weights = _weigh(server, lasts)
        finally:
            stopping = time.monotonic()
            stop(server)
        return Run(returned - began, answered - began, time.monotonic() - stopping, *weights)


def _weigh(server: Server, lasts: bool) -> tuple[float, float, float, float, float | None]:
    """The frontend and the heaviest worker, resident and unique each; the supervisor, resident."""
    frontend = _megabytes(server.process)
    workers = [_megabytes(process) for process in server.workers()]
    supervisor = supervisor_of(server.process) if lasts else None
    if supervisor is not None:
        wait_small(supervisor)
    return (*frontend, *max(workers), None if supervisor is None else _megabytes(supervisor)[0])


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
