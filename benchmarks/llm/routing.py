"""Prefix routing: what two workers have computed of conversations, beside the least busy worker for each request."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.llm.arrivals import Clients
from benchmarks.llm.checkpoint import Checkpoint
from benchmarks.llm.conversations import ANSWERED, SAID, SYSTEM, ChatLoad, Turns
from benchmarks.llm.trace import percentile
from benchmarks.reports.figures import figure, median, paired_ratio
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, started, store_of
from msx_archiver.options import PackOptions

QUICK = ("--rounds", "1", "--conversations", "4", "--turns", "2")
MODEL, WORKERS, SLOTS = "llm", 2, 16
SMALL = Checkpoint(dim=256, layers=4, heads=4, kv_heads=2, hidden=704)
SETTINGS = {"least busy": False, "by prefix": True}
"""`routing` of the model-config.yaml."""
CACHED = 1.5
"""The promise: so many times the cached tokens."""
START = 180.0
"""Seconds."""


@benchmark("llm-routing")
@click.option("--conversations", default=28, type=click.IntRange(2), help="At the same time.")
@click.option("--turns", default=5, type=click.IntRange(2, 7), help="Of each conversation.")
@click.option("--at-once", default=4, type=click.IntRange(1), help="Requests in progress.")
@click.option("--rounds", default=3, type=click.IntRange(1), help="Both settings take turns in each round.")
def main(report: Report, conversations: int, turns: int, at_once: int, rounds: int) -> None:
    """Cached tokens and the time to the first token of conversations over two workers, with and without routing."""
    load, checkpoint = ChatLoad(conversations, turns, at_once), SMALL
    found: dict[str, list[Turns]] = {name: [] for name in SETTINGS}
    with TemporaryDirectory(prefix="msx-benchmark-") as folder, ExitStack() as servers:
        checkpoint.write(Path(folder))
        serving = {name: servers.enter_context(_served(folder, routing)) for name, routing in SETTINGS.items()}
        clients = Clients(checkpoint.vocabulary)
        for number in range(rounds):
            for name in sorted(SETTINGS, reverse=bool(number % 2)):
                found[name].append(load.run(serving[name].address, clients, number))
            progress(f"llm-routing: round {number + 1} of {rounds}")
    report.notes.append(
        f"{rounds} rounds of {conversations} conversations of {turns} turns, {at_once} requests in progress: {SYSTEM} "
        f"tokens that all begin with, {SAID} that a user says, {ANSWERED} of each answer; {WORKERS} workers, each with "
        f"a cache for {SLOTS} conversations"
    )
    report.tables.append(Table("Turns of conversations", COLUMNS, [_row(name, found[name]) for name in SETTINGS]))
    report.targets += _targets(found["by prefix"], found["least busy"])


COLUMNS = ("routing", "prompt tokens", "cached tokens", "share", "p50 to the first token, ms", "p90, ms")


def _row(name: str, rounds: Sequence[Turns]) -> Sequence[str]:
    prompt, cached = sum(one.prompt for one in rounds), sum(one.cached for one in rounds)
    times = [median([_first(one, share) * 1e3 for one in rounds]) for share in (0.5, 0.9)]
    return (name, figure(prompt), figure(cached), f"{cached / prompt:.0%}", *map(figure, times))


def _first(turns: Turns, share: float) -> float:
    return percentile(turns.first, share)


def _targets(routed: Sequence[Turns], busy: Sequence[Turns]) -> Iterator[Target]:
    cached = paired_ratio([one.cached for one in routed], [one.cached for one in busy])
    yield Target("cached tokens: of least busy", _spread(cached), f"≥ {CACHED:g}", cached[0] >= CACHED)
    first = paired_ratio([_first(one, 0.5) for one in routed], [_first(one, 0.5) for one in busy])
    yield Target("p50 to the first token: of least busy", _spread(first), "< 1", first[0] < 1)


def _spread(ratio: tuple[float, float, float]) -> str:
    middle, low, high = ratio
    return f"{middle:.2f} ({low:.2f} – {high:.2f})"


@contextmanager
def _served(folder: str, routing: bool) -> Iterator[Server]:
    """Server with all of its workers."""
    options = PackOptions(model_name=MODEL, handler="text_generation", extra_files=folder, archive_format="zip-store")
    with (
        store_of(options, json.dumps(_config(routing))) as store,
        started(store, MODEL, tokens=False, limit=START) as server,
    ):
        deadline = time.monotonic() + START
        while _ready(server) < WORKERS:
            if time.monotonic() > deadline:
                raise click.ClickException(f"Not all {WORKERS} workers are ready after {START:g} s.")
            time.sleep(0.1)
        yield server


def _ready(server: Server) -> int:
    with urlopen(f"{server.management}/models/{MODEL}", timeout=10) as reply:
        [described] = json.load(reply)
    return sum(worker["status"] == "READY" for worker in described["workers"])


def _config(routing: bool) -> dict[str, Any]:
    """model-config.yaml."""
    return {
        "minWorkers": WORKERS,
        "maxWorkers": WORKERS,
        "startupTimeout": int(START),
        "routing": routing,
        "maxTotalTokens": 640,
        "slotBuckets": [4, SLOTS],
        "contextBuckets": [640],
        "prefillBuckets": [128],
        "maxBatchPrefillTokens": 128,
        "mindspore": {"compileCache": False, "threads": 1},
    }
