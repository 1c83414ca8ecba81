"""A server whose one model is divided over several ranks, and what is seen of it while it loads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from benchmarks.load.client import Connection, answers
from benchmarks.parallel.perceptron import Perceptron
from benchmarks.servers.msx import Server, new_store, start, stop

LIMIT = 120.0
"""Seconds for a load, and for a request."""
SAMPLING = 0.01
"""Seconds between two looks at the memory."""
PHASES = ("process start", "import of MindSpore", "init of the group", "weights", "warm-up")

Steps = list[dict[str, float]]


@dataclass
class Group:
    ranks: int
    server: Server
    perceptron: Perceptron
    load: dict[str, float] = field(default_factory=dict)
    """Seconds by phase, on rank 0, which waits for the others where the group is made and where it warms up."""
    peaks: dict[int, int] = field(default_factory=dict)
    """Rank to the most bytes of anonymous memory that it has had while it loaded."""

    def ask(self, work: str, steps: int = 1, *, stream: bool = False) -> tuple[float, Steps]:
        """The client's seconds, and what rank 0 noted of each step."""
        order = {"work": work, "steps": steps, "stream": stream, "x": [0.5] * self.perceptron.width}
        seconds, answer = self._post(order)
        return seconds, objects(answer) if stream else json.loads(answer)

    def instants(self) -> dict[str, float]:
        found: dict[str, float] = json.loads(self._post({"work": "instants"})[1])
        return found

    def _post(self, order: dict[str, Any]) -> tuple[float, bytes]:
        return asyncio.run(asyncio.wait_for(self._send(json.dumps(order).encode()), LIMIT))

    async def _send(self, body: bytes) -> tuple[float, bytes]:
        connection = await Connection.open(self.server.address)
        began = time.perf_counter()
        answer = await connection.post("/predictions/mlp", body, "application/json")
        seconds = time.perf_counter() - began
        connection.leave()
        if answer.status != 200:
            raise click.ClickException(f"{self.ranks} ranks: {answer.status} {answer.body[:500]!r}")
        return seconds, answer.body


@contextlib.contextmanager
def group(ranks: int, perceptron: Perceptron, weights: Path) -> Iterator[Group]:
    """One that is loaded from the file `weights`; `Group.load` and `Group.peaks` are of this load."""
    with new_store("mlp", _config(ranks, perceptron, weights), "mlp_net") as store:
        server = start(store, "mlp", tokens=False)
        try:
            made = Group(ranks, server, perceptron)
            ready = _watch(made)
            made.load = phases(made.instants() | {"ready": ready})
            yield made
        finally:
            stop(server)


def phases(instants: dict[str, float]) -> dict[str, float]:
    """Seconds by phase, of the instants at which rank 0 had come so far."""
    reached = [instants[name] for name in ("process", "handler", "imported", "met", "loaded", "ready")]
    return dict(zip(PHASES, (after - before for before, after in pairwise(reached)), strict=True))


def _config(ranks: int, perceptron: Perceptron, weights: Path) -> str:
    config: dict[str, Any] = {
        "minWorkers": 1,
        "maxWorkers": 1,
        "batchSize": 1,
        "startupTimeout": int(LIMIT),
        "responseTimeout": int(LIMIT),
        "mindspore": {"mode": "pynative"},
        "mlp": {
            "width": perceptron.width,
            "hidden": perceptron.hidden,
            "blocks": perceptron.blocks,
            "weights": str(weights),
        },
    }
    if ranks > 1:
        config |= {"parallelType": "tp", "msrun": {"nproc-per-node": ranks, "OMP_NUMBER_THREADS": 1}}
    return json.dumps(config)  # which is YAML, too


def _watch(made: Group) -> float:
    """Until the model is ready: the instant at which it was found to be."""
    deadline = time.monotonic() + LIMIT
    while not answers(made.server.address, "/readyz"):
        workers = _workers(made.server)
        if time.monotonic() > deadline or any("lastError" in worker for worker in workers):
            raise click.ClickException(f"The group of {made.ranks} is not loaded: {workers}")
        for rank, pid in pids(workers).items():
            made.peaks[rank] = max(made.peaks.get(rank, 0), anonymous(pid))
        time.sleep(SAMPLING)
    return time.time()


def _workers(server: Server) -> list[dict[str, Any]]:
    """Workers of the describe API."""
    with urllib.request.urlopen(f"{server.management}/models/mlp", timeout=LIMIT) as answer:
        workers: list[dict[str, Any]] = json.load(answer)[0]["workers"]
    return workers


def pids(workers: list[dict[str, Any]]) -> dict[int, int]:
    """Rank to process id; a model of one rank does not list any."""
    ranks = [rank for worker in workers for rank in worker.get("ranks") or [{**worker, "rank": 0}]]
    return {rank["rank"]: rank["pid"] for rank in ranks if rank.get("pid")}


def anonymous(pid: int) -> int:
    """Bytes that are not the pages of a file; 0 of a process that is not there."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:")), 0)


def objects(stream: bytes) -> Steps:
    """JSON objects, one after the other."""
    return [json.loads(text) for text in re.findall(rb"\{[^}]*\}", stream)]
