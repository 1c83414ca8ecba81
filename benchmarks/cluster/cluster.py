"""The same groups on this machine and on the nodes of a Ray cluster: how soon they serve, and how fast."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.cluster.footprint import Footprint, footprint_table, footprint_target
from benchmarks.load.client import Connection, answers
from benchmarks.parallel.group import pids
from benchmarks.parallel.perceptron import Perceptron
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, new_store, start, stop, store_of, wait_ready
from msx_archiver.options import PackOptions
from tests.e2e.cluster import run_cluster

QUICK = ("--rounds", "1", "--requests", "20", "--tokens", "16")
LOCAL, RAY = "one machine", "Ray, two nodes"
LEAST = 0.95
"""Target: so much of the requests and tokens of one machine."""
LIMIT = 180.0
EXAMPLE = Path(__file__).parents[2] / "examples" / "llama"
DATA = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


@dataclass
class Place:
    """Measurements in one place, a figure a round; seconds, requests and tokens per second."""

    perceptron: Server
    llama: Server
    ready: dict[str, float] = field(default_factory=dict)
    """Seconds from the start of the server to the first answer, by model."""
    back: list[float] = field(default_factory=list)
    """Seconds from the SIGKILL of rank 1 until the group serves again."""
    middle: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    busy_rates: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    first_token: list[float] = field(default_factory=list)


@benchmark("cluster")
@click.option("--rounds", default=5, type=click.IntRange(1), help="Both places take turns in each round.")
@click.option("--requests", default=200, type=click.IntRange(1), help="Of one client, and of eight, in each turn.")
@click.option("--tokens", default=128, type=click.IntRange(1), help="Of each streamed text.")
@click.option("--width", default=1024, type=click.IntRange(1), help="Of the perceptron; its blocks are 4 times wider.")
def main(report: Report, rounds: int, requests: int, tokens: int, width: int) -> None:
    """A perceptron and the example Llama over two ranks: both on this machine, or one on each node of a cluster.

    The nodes are on this machine, too, and connected by its loopback: what is compared is the way, not the machines.
    """
    perceptron = Perceptron(width, 3)
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder, run_cluster() as cluster:
        weights = Path(folder, "model.safetensors")
        perceptron.write(weights)
        weighed = {LOCAL: Footprint.of_server(""), RAY: Footprint.of_server(cluster.address)}
        with both(perceptron, weights, "") as here, both(perceptron, weights, cluster.address) as there:
            places = {LOCAL: here, RAY: there}
            for number in range(rounds):
                for place in places.values() if number % 2 else reversed(places.values()):
                    _turn(place, perceptron, requests, tokens)
                progress(f"cluster: round {number + 1} of {rounds}")
            for place in places.values():
                place.back = [_restart(place.perceptron) for _ in range(min(rounds, 3))]
    report.notes.append(
        f"Perceptron: 3 blocks of {width:,} × {4 * width:,} and back, a step a request; Llama: examples/llama, a text "
        f"of {tokens} tokens; {rounds} rounds of {requests} requests; 2 ranks of 1 thread"
    )
    report.tables += [_speed(places), _starts(places), footprint_table(weighed)]
    report.targets += [*_targets(places), footprint_target(weighed[LOCAL], weighed[RAY])]


@contextmanager
def both(perceptron: Perceptron, weights: Path, cluster: str) -> Iterator[Place]:
    """Servers of the two models, ready."""
    ready: dict[str, float] = {}
    with (
        _served("mlp", new_store("mlp", _config(perceptron, weights, cluster), "mlp_net"), cluster, ready) as first,
        _served("llama", store_of(_llama(), _llama_config(cluster)), cluster, ready) as second,
    ):
        yield Place(first, second, ready)


@contextmanager
def _served(model: str, store: AbstractContextManager[Path], cluster: str, ready: dict[str, float]) -> Iterator[Server]:
    with store as folder:
        if cluster:
            with Path(folder.parent, "config.properties").open("a") as file:
                file.write(f"cluster_address={cluster}\n")
        began = time.monotonic()
        server = start(folder, model, tokens=False)
        try:
            wait_ready(server, LIMIT)
            ready[model] = time.monotonic() - began
            progress(f"cluster: {model} serves ({'Ray' if cluster else 'one machine'})")
            yield server
        finally:
            stop(server)


def _launched(cluster: str) -> dict[str, object]:
    split = {"nproc-per-node": 1, "nnodes": 2} if cluster else {"nproc-per-node": 2}
    return {"parallelType": "tp", "msrun": {**split, "OMP_NUMBER_THREADS": 1}, "minWorkers": 1, "maxWorkers": 1}


def _config(perceptron: Perceptron, weights: Path, cluster: str) -> str:
    sizes = {"width": perceptron.width, "hidden": perceptron.hidden, "blocks": perceptron.blocks}
    limits = {"startupTimeout": int(LIMIT), "responseTimeout": int(LIMIT), "deviceType": "cpu"}
    config = {**_launched(cluster), **limits, "mindspore": {"mode": "pynative"}, "batchSize": 1}
    return json.dumps({**config, "mlp": {**sizes, "weights": str(weights)}})


def _llama() -> PackOptions:
    extra = ",".join(str(EXAMPLE / name) for name in DATA)
    serialized = str(EXAMPLE / "model.safetensors")
    return PackOptions(
        model_name="llama", handler="text_generation", serialized_file=serialized, extra_files=extra, version="1.0"
    )


def _llama_config(cluster: str) -> str:
    engine = {"slotBuckets": [1], "prefillBuckets": [64], "maxBatchPrefillTokens": 64, "maxConcurrent": 4}
    return json.dumps({**_launched(cluster), **engine, "deviceType": "cpu", "startupTimeout": int(LIMIT)})


# -- one turn --


def _turn(place: Place, perceptron: Perceptron, requests: int, tokens: int) -> None:
    order = {"work": "mlp", "steps": 1, "stream": False, "x": [0.5] * perceptron.width}
    body = json.dumps(order).encode()
    seconds = asyncio.run(_asked(place.perceptron, body, requests, 1))
    place.middle.append(median(seconds))
    place.rates.append(requests / sum(seconds))
    began = time.perf_counter()
    asyncio.run(_asked(place.perceptron, body, requests, 8))
    place.busy_rates.append(requests / (time.perf_counter() - began))
    first, rate = asyncio.run(_text(place.llama, tokens))
    place.first_token.append(first)
    place.tokens.append(rate)


async def _asked(server: Server, body: bytes, requests: int, clients: int) -> list[float]:
    found = await asyncio.gather(*(_client(server, body, requests // clients) for _ in range(clients)))
    return [one for some in found for one in some]


async def _client(server: Server, body: bytes, requests: int) -> list[float]:
    connection, seconds = await Connection.open(server.address), list[float]()
    for _ in range(requests):
        began = time.perf_counter()
        answer = await connection.post("/predictions/mlp", body, "application/json")
        seconds.append(time.perf_counter() - began)
        if answer.status != 200:
            raise click.ClickException(f"{answer.status} {answer.body[:300]!r}")
    connection.leave()
    return seconds


async def _text(server: Server, tokens: int) -> tuple[float, float]:
    """Seconds to the first token, and tokens per second after it."""
    body = {"model": "llama", "prompt": "once upon a time", "max_tokens": tokens, "stream": True, "ignore_eos": True}
    connection = await Connection.open(server.address)
    began, instants = time.perf_counter(), list[float]()
    async for piece in connection.stream("/v1/completions", json.dumps(body).encode()):
        instants += [time.perf_counter()] * piece.count(b'"text"')
    connection.leave()
    return instants[0] - began, (len(instants) - 1) / (instants[-1] - instants[0])


def _restart(server: Server) -> float:
    with urllib.request.urlopen(f"{server.management}/models/mlp", timeout=LIMIT) as answer:
        found = pids(json.load(answer)[0]["workers"])
    os.kill(found[1], signal.SIGKILL)
    began = time.monotonic()
    while answers(server.address, "/readyz"):
        time.sleep(0.005)
    wait_ready(server, LIMIT)
    return time.monotonic() - began


# -- tables --


ROWS: Sequence[tuple[str, Callable[[Place], list[float]]]] = (
    ("p50 of a request, ms", lambda place: [1000 * one for one in place.middle]),
    ("requests/s, one client", lambda place: place.rates),
    ("requests/s, eight clients", lambda place: place.busy_rates),
    ("time to the first token, ms", lambda place: [1000 * one for one in place.first_token]),
    ("tokens/s of one text", lambda place: place.tokens),
)


def _speed(places: dict[str, Place]) -> Table:
    rows = []
    for name, values in ROWS:
        here, there = values(places[LOCAL]), values(places[RAY])
        ratio, low, high = paired_ratio(there, here)
        shown = [f"{figure(median(one))} ({spread(one)})" for one in (here, there)]
        rows.append((name, *shown, f"{ratio:.2f} ({low:.2f} – {high:.2f})"))
    return Table("Two ranks, medians of the rounds", ("", LOCAL, RAY, "Ray / one machine"), rows)


def _starts(places: dict[str, Place]) -> Table:
    rows = [
        ("start to first answer: perceptron", *(figure(place.ready["mlp"]) for place in places.values())),
        ("start to first answer: Llama", *(figure(place.ready["llama"]) for place in places.values())),
        ("SIGKILL of a rank to the next answer", *(figure(median(place.back)) for place in places.values())),
    ]
    return Table("Seconds", ("", LOCAL, RAY), rows)


def _targets(places: dict[str, Place]) -> list[Target]:
    made = []
    for name, values in ROWS[1], ROWS[2], ROWS[4]:
        ratio, _, _ = paired_ratio(values(places[RAY]), values(places[LOCAL]))
        made.append(Target(f"{name}: Ray / one machine", f"{ratio:.2f}", f"≥ {LEAST}", ratio >= LEAST))
    return made
