"""Speculative decoding: tokens a second of texts that stand in their prompts, and of texts that do not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.llm.arrivals import Arrival, Clients
from benchmarks.llm.copying import CopyingCheckpoint, CopyingPrompts
from benchmarks.llm.streams import stream_all, text_of
from benchmarks.llm.trace import Trace, throughput
from benchmarks.reports.figures import figure, median, paired_ratio
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, started, store_of
from msx_archiver.options import PackOptions

QUICK = ("--rounds", "1", "--tokens", "24", "--texts", "1")
MODEL = "llm"
SLOTS, TEXTS = (1, 4, 8, 16), (1, 4, 16)
PROMPT, CONTEXT = 256, 384
COPYING, RANDOM = 1.8, 0.97
"""The promise, of one text's tokens a second without."""

Load = tuple[str, int]
"""The kind of the prompts, and how many texts at once."""


@benchmark("llm-speculation")
@click.option("--texts", multiple=True, default=TEXTS, type=click.IntRange(1, SLOTS[-1]), help="At once; repeatable.")
@click.option("--rounds", default=5, type=click.IntRange(1), help="With and without take turns in each round.")
@click.option("--tokens", default=96, type=click.IntRange(16, 96), help="Of each text.")
def main(report: Report, texts: tuple[int, ...], rounds: int, tokens: int) -> None:
    """Tokens a second with prompt look-up, and of the same server without it, by what stands in the prompt."""
    checkpoint = CopyingCheckpoint()
    prompts = CopyingPrompts(Clients(checkpoint.vocabulary), PROMPT)
    loads = list(product(prompts.kinds(), sorted({*texts})))
    found: dict[Load, tuple[list[float], list[float]]] = {load: ([], []) for load in loads}
    with TemporaryDirectory(prefix="msx-benchmark-") as folder, _served(checkpoint, Path(folder)) as server:
        _check_texts(server, prompts)
        for number in range(-1, rounds):  # the first is of what is allocated and measured at the first time
            for load in loads:
                _turn(
                    server, prompts.kinds()[load[0]], load[1], tokens, number, found[load] if number >= 0 else ([], [])
                )
            progress(f"llm-speculation: round {number + 1} of {rounds}")
    report.notes.append(
        f"{rounds} rounds of texts of {tokens} tokens behind prompts of {PROMPT}; drafts of up to 7 tokens"
    )
    report.tables.append(Table("Output tokens a second", COLUMNS, [_row(load, *found[load]) for load in loads]))
    report.targets += [target for load in loads for target in _targets(load, *found[load])]


COLUMNS = ("prompts", "texts", "without", "with speculation", "ratio")


def _row(load: Load, with_: Sequence[float], without: Sequence[float]) -> Sequence[str]:
    middle, low, high = paired_ratio(with_, without)
    ratio = f"{middle:.2f} ({low:.2f} – {high:.2f})"
    return (load[0], str(load[1]), figure(median(without)), figure(median(with_)), ratio)


def _targets(load: Load, with_: Sequence[float], without: Sequence[float]) -> Iterator[Target]:
    (kind, texts), ratio = load, paired_ratio(with_, without)[0]
    least = {"copying": COPYING if texts == 1 else RANDOM}.get(kind, RANDOM)
    yield Target(f"{kind}, {texts} at once: of without", f"{ratio:.2f}", f"≥ {least:g}", ratio >= least)


def _turn(
    server: Server,
    make: Callable[[int], Arrival],
    texts: int,
    tokens: int,
    number: int,
    found: tuple[list[float], list[float]],
) -> None:
    for speculative in (True, False) if number % 2 else (False, True):
        asked = [replace(make(tokens), speculative=speculative) for _ in range(texts)]
        traces = stream_all(server.address, asked)
        found[0 if speculative else 1].append(_rate(traces))


def _rate(traces: Sequence[Trace]) -> float:
    """Rate from the first token of any to the last: of several texts, some may have ended before others have begun."""
    return throughput(traces, min(trace.instants[0] for trace in traces), max(trace.instants[-1] for trace in traces))


def _check_texts(server: Server, prompts: CopyingPrompts) -> None:
    """Both say the same."""
    for make in prompts.kinds().values():
        asked = make(24)
        if text_of(server.address, asked) != text_of(server.address, replace(asked, speculative=False)):
            raise click.ClickException("The text is another one without speculation.")


@contextmanager
def _served(checkpoint: CopyingCheckpoint, folder: Path) -> Iterator[Server]:
    checkpoint.write(folder)
    options = PackOptions(
        model_name=MODEL, handler="text_generation", extra_files=str(folder), archive_format="zip-store"
    )
    with store_of(options, json.dumps(_config())) as store, started(store, MODEL, tokens=False, limit=180) as server:
        yield server


def _config() -> dict[str, Any]:
    """model-config.yaml."""
    return {
        "minWorkers": 1,
        "maxWorkers": 1,
        "startupTimeout": 180,
        "maxTotalTokens": CONTEXT,
        "slotBuckets": SLOTS,
        "contextBuckets": [CONTEXT],
        "prefillBuckets": [128],
        "maxBatchPrefillTokens": 128,
        "speculative": {"tokens": 7},
        "mindspore": {"compileCache": False},
    }
