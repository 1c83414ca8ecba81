"""msx_client beside the bare library that it stands on, on the same server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
import grpc
import httpx

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.contests.contest import ratio, rotated
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, serve
from msx_client import AsyncClient, Client
from msx_client.grpc.messages import INFERENCE, message

QUICK = ("--rounds", "1", "--requests", "50")
ECHO = "echo"
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 1\njobQueueSize: 1000\n"
BODY = b"x" * 1024
PATH = f"/predictions/{ECHO}"
LEAST = 0.8
"""Least share of the bare library's requests per second."""


@dataclass
class Way:
    """`run` makes so many requests. `rates`: requests per second, one a round."""

    name: str
    bare: str
    """The way that it is compared with; its own name if it is bare."""
    run: Callable[[int], None]
    rates: list[float] = field(default_factory=list)

    def take(self, requests: int) -> None:
        started = time.perf_counter()
        self.run(requests)
        self.rates.append(requests / (time.perf_counter() - started))


@benchmark("client")
@click.option("--rounds", default=7, type=click.IntRange(1), help="All ways take turns in each round.")
@click.option("--requests", default=1000, type=click.IntRange(1), help="Of each way in each turn.")
@click.option("--tasks", default=8, type=click.IntRange(1), help="Requests at a time of the ways on a loop.")
def main(report: Report, rounds: int, requests: int, tasks: int) -> None:
    """Requests per second of 1 KB, one after the other and several at a time, over HTTP/1.1 and gRPC."""
    with serve(ECHO, CONFIG) as server, httpx.Client() as bare:
        ways = [*waiting(server, bare), *on_a_loop(server, tasks), *by_grpc(server)]
        for way in ways:
            way.run(min(requests, 100))
        for number in range(rounds):
            for way in rotated(ways, number):
                way.take(requests)
            progress(f"client: round {number + 1} of {rounds}")
    report.notes.append(f"Load: {rounds} rounds of {requests} requests of 1 KB; on a loop {tasks} at a time")
    tell(report, ways)


def waiting(server: Server, bare: httpx.Client) -> list[Way]:
    url, client = server.address.url, Client(server.address.url)

    def by_httpx(requests: int) -> None:
        for _ in range(requests):
            assert bare.post(url + PATH, content=BODY).content == BODY

    def by_client(requests: int) -> None:
        for _ in range(requests):
            assert client.predict(ECHO, BODY) == BODY

    return [Way("httpx", "httpx", by_httpx), Way("Client, HTTP", "httpx", by_client)]


def on_a_loop(server: Server, tasks: int) -> list[Way]:
    url = server.address.url

    async def by_httpx(requests: int) -> None:
        async with httpx.AsyncClient() as client:
            await shared(requests, tasks, lambda: client.post(url + PATH, content=BODY))

    async def by_client(requests: int) -> None:
        async with AsyncClient(url) as client:
            await shared(requests, tasks, lambda: client.predict(ECHO, BODY))

    name = "httpx on a loop"
    return [
        Way(name, name, lambda requests: asyncio.run(by_httpx(requests))),
        Way("AsyncClient, HTTP", name, lambda requests: asyncio.run(by_client(requests))),
    ]


async def shared(requests: int, tasks: int, ask: Callable[[], Any]) -> None:
    async def some(count: int) -> None:
        for _ in range(count):
            await ask()

    await asyncio.gather(*(some(requests // tasks + (number < requests % tasks)) for number in range(tasks)))


def by_grpc(server: Server) -> list[Way]:
    """Ways over the HTTP port, which speaks gRPC, too."""
    target = server.address.url.rpartition("//")[2]
    client = Client(f"grpc://{target}")
    path = f"/{INFERENCE}.InferenceAPIsService/Predictions"
    response = message(f"{INFERENCE}.PredictionResponse")
    request = message(f"{INFERENCE}.PredictionsRequest")(model_name=ECHO, input={"body": BODY})
    call = grpc.insecure_channel(target).unary_unary(path, lambda one: one.SerializeToString(), response.FromString)

    def bare(requests: int) -> None:
        for _ in range(requests):
            assert call(request).prediction == BODY

    def by_client(requests: int) -> None:
        for _ in range(requests):
            assert client.predict(ECHO, BODY) == BODY

    return [Way("grpcio", "grpcio", bare), Way("Client, gRPC", "grpcio", by_client)]


def tell(report: Report, ways: Sequence[Way]) -> None:
    rates = {way.name: way.rates for way in ways}
    columns = ("client", "requests/s", "lowest – highest", "of the bare library")
    rows = [(way.name, figure(median(way.rates)), spread(way.rates), ratio(way.rates, rates[way.bare])) for way in ways]
    report.tables.append(Table("Requests per second by client", columns, rows))
    for way in ways:
        if way.bare != way.name:
            found = paired_ratio(way.rates, rates[way.bare])[0]
            report.targets.append(
                Target(f"{way.name}: of {way.bare}", f"{found:.2f}", f"≥ {LEAST:g}", met=found >= LEAST)
            )
