"""Lines of a batch beside requests of clients: the p99 of a model of fixed cost, and the first token of texts."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks.batches.backlog import backlog
from benchmarks.batching.arrivals import poisson
from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.llm.host import MODEL, VOCABULARY
from benchmarks.llm.host_streams import PROMPT, stream_texts
from benchmarks.llm.null_checkpoint import NullCheckpoint
from benchmarks.llm.trace import percentile
from benchmarks.load.open_loop import OpenLoop
from benchmarks.reports.figures import figure, median, paired_ratio
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import HANDLERS, Server, serve, started, store_of
from msx_archiver.options import PackOptions

QUICK = ("--rounds", "1", "--seconds", "2", "--requests", "10", "--texts", "3", "--workers", "4")
WORK, SECONDS = "/predictions/work", 0.02
CONFIG = "minWorkers: {0}\nmaxWorkers: {0}\nbatchSize: 1\njobQueueSize: 1000\nloadSeconds: 0\nworkSeconds: 0.02\n"
PROPERTIES = "jobs=true\nbatch_share={0:g}\n"
LINES = 50_000
PATIENCE = 30.0
SLOTS, STEP, TOKEN, TOKENS = 16, 0.02, 0.0002, 20
"""Texts of a step, seconds of a step, of each token of a prompt beside, and tokens of a live text."""
MOST_P99, MOST_FIRST = 1.1, 1.25


class Pair(NamedTuple):
    """Seconds without a batch and beside one, and the lines a second that were answered meanwhile."""

    without: float
    beside: float
    lines: float


@benchmark("batches")
@click.option("--rounds", default=3, type=click.IntRange(1), help="Of each measurement.")
@click.option("--seconds", default=20.0, type=click.FloatRange(1), help="Of live requests, in each round.")
@click.option("--requests", default=500, type=click.IntRange(1), help="Live ones at least, in each round.")
@click.option("--texts", default=40, type=click.IntRange(1), help="Live texts, in each round.")
@click.option("--prompt", default=1000, type=click.IntRange(1, 4000), help="Tokens of each live text's prompt.")
@click.option("--load", default=0.1, type=click.FloatRange(0.01, 0.9), help="Share of the workers' time.")
@click.option("--share", default=0.5, type=click.FloatRange(0.01, 1), help="The key batch_share.")
@click.option("--workers", default=(1, 4, 8), multiple=True, type=click.IntRange(1, 64), help="Of the fixed model.")
def main(
    report: Report,
    rounds: int,
    seconds: float,
    requests: int,
    texts: int,
    prompt: int,
    load: float,
    share: float,
    workers: Sequence[int],
) -> None:
    """Live requests beside a batch: p99 of a model that takes 20 ms, and the first token of a language model."""
    rates = {count: load * count / SECONDS for count in workers}
    lasts = {count: max(seconds, requests / rate) for count, rate in rates.items()}
    fixed = {count: [_fixed(count, rates[count], share, lasts[count], n) for n in range(rounds)] for count in workers}
    tell_fixed(report, fixed)
    progress("batches: the fixed model is measured")
    tell_texts(report, [_texts(share, texts, prompt) for _ in range(rounds)])
    report.notes += [
        f"{rounds} rounds of {seconds:g} s, and of {requests} live requests at least; they come at random, {load:.0%} "
        f"of what the workers can; batch_share {share:g}",
        f"Texts: {SLOTS} at once, a step takes {STEP * 1000:g} ms and {TOKEN * 1000:g} ms a token of a prompt; live "
        f"prompts of {prompt} tokens, lines of {PROMPT} and 100 tokens",
    ]


def _fixed(workers: int, rate: float, share: float, seconds: float, seed: int) -> Pair:
    due = poisson(rate, seconds, random.Random(seed))
    with serve("work", CONFIG.format(workers), properties=PROPERTIES.format(share)) as server, OpenLoop() as live:

        def p99() -> float:
            return percentile(live.run(server.address, WORK, b"x", due, PATIENCE).taken, 0.99)

        live.run(server.address, WORK, b"x", [0.0] * workers, PATIENCE)  # what the first requests bring
        without = p99()
        with backlog(server, WORK, {"a": 1}, LINES) as batch:
            beside = p99()
            return Pair(without, beside, batch.per_second())


def _texts(share: float, texts: int, prompt: int) -> Pair:
    line = {"model": MODEL, "prompt": [*range(600, 600 + PROMPT)], "max_tokens": 100, "ignore_eos": True}
    with served_texts(share) as server:
        first_tokens(server, 3, prompt)
        without = first_tokens(server, texts, prompt)
        with backlog(server, "/v1/completions", line, LINES) as batch:
            beside = first_tokens(server, texts, prompt)
            return Pair(median(without), median(beside), batch.per_second())


def first_tokens(server: Server, texts: int, prompt: int) -> list[float]:
    """Seconds until the first token of each, one after the other; no two prompts begin alike."""
    prompts = [random.choices(range(300, VOCABULARY), k=prompt) for _ in range(texts)]
    return [stream_texts(server.address, 1, TOKENS, {"prompt": one})[0].first for one in prompts]


@contextmanager
def served_texts(share: float) -> Iterator[Server]:
    config: dict[str, Any] = {
        "minWorkers": 1,
        "maxWorkers": 1,
        "slotBuckets": [SLOTS],
        "maxTotalTokens": 4096,
        "nullModel": {"stepSeconds": STEP, "tokenSeconds": TOKEN},
    }
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder:
        NullCheckpoint(VOCABULARY).write(Path(folder))
        options = PackOptions(model_name=MODEL, handler=str(HANDLERS / f"{MODEL}.py"), extra_files=folder)
        with store_of(options, json.dumps(config)) as store:
            with Path(store.parent, "config.properties").open("a") as file:
                file.write(PROPERTIES.format(share))
            with started(store, MODEL, tokens=False) as server:
                yield server


def tell_fixed(report: Report, found: dict[int, list[Pair]]) -> None:
    rows = [[str(workers), *_row(pairs)] for workers, pairs in found.items()]
    head = ["workers", "p99 without, ms", "p99 beside, ms", "ratio", "lines a second"]
    report.tables.append(Table("Live requests to a model that takes 20 ms", head, rows))
    for workers, pairs in found.items():
        ratio, what = _ratio(pairs), f"p99 of live requests beside a batch, workers: {workers}"
        report.targets.append(Target(what, f"{ratio:.2f}", f"≤ {MOST_P99}", ratio <= MOST_P99))


def tell_texts(report: Report, pairs: list[Pair]) -> None:
    head = ["first token without, ms", "first token beside, ms", "ratio", "lines a second"]
    report.tables.append(Table("Live texts, one after the other (medians)", head, [_row(pairs)]))
    ratio = _ratio(pairs)
    report.targets.append(Target("first token beside a batch", f"{ratio:.2f}", f"≤ {MOST_FIRST}", ratio <= MOST_FIRST))


def _row(pairs: list[Pair]) -> list[str]:
    without, beside, lines = (median([*values]) for values in zip(*pairs, strict=True))
    return [figure(without * 1000), figure(beside * 1000), f"{_ratio(pairs):.2f}", figure(lines)]


def _ratio(pairs: list[Pair]) -> float:
    return paired_ratio([one.beside for one in pairs], [one.without for one in pairs])[0]
