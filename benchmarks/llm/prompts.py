"""Measures the longest gap between two tokens of a neighbour's stream while others send long prompts."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import psutil

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.llm.prompt_clients import PromptClients
from benchmarks.llm.words_checkpoint import WordsCheckpoint
from benchmarks.reports.figures import figure, median, paired_ratio, spread
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import HANDLERS, Server, started, store_of
from msx_archiver.options import PackOptions

QUICK = ("--rounds", "1", "--tokens", "20", "--context", "2048", "--characters", "300000")
MODEL = "null_text"
CONTEXTS = (4_096, 32_768)
VOCABULARY = 8_192
CLIENTS = 8
STEP_MS = 10.0
REFUSED = 6_000_000
"""Characters: about what max_request_size allows."""
PAUSE = 0.2
"""Seconds before each prompt, in which the neighbour's text is generated."""
TIMES = 3
"""Prompts of each client."""
ALONE, IDS, TEXTS = "nothing", "as token ids", "as texts"
BY_LENGTH, BY_TOKENS = "a text that is refused by its length", "a text that is refused by its tokens"
NOT_ASCII = "é "
"""A text that is not ASCII: its normal form may be shorter, so that it is tokenized before it is refused."""
MOST_RATIO, MOST_ADDED = 1.5, 10.0
MEBIBYTE = 1 << 20
PATIENCE = 60.0

Gaps = dict[str, list[float]]
"""Longest gap of each round, in ms, by what is sent meanwhile."""


@benchmark("llm-prompts")
@click.option("--context", "contexts", multiple=True, default=CONTEXTS, type=click.IntRange(64), help="Repeatable.")
@click.option("--rounds", default=9, type=click.IntRange(1), help="All loads take turns in each round.")
@click.option("--tokens", default=300, type=click.IntRange(2), help="Of the neighbour's text.")
@click.option("--characters", default=REFUSED, type=click.IntRange(1), help="Of the text that is refused.")
@click.option("--before", type=click.Path(exists=True, path_type=Path), help="msx-serve of another checkout.")
def main(
    report: Report, contexts: tuple[int, ...], rounds: int, tokens: int, characters: int, before: Path | None
) -> None:
    """The longest gap between two tokens of a stream while others send prompts, by what they send."""
    report.notes.append(
        f"{rounds} rounds of {tokens} tokens, a step takes {STEP_MS:g} ms; {CLIENTS} clients send the longest prompts "
        f"that are allowed, or one client a text of {characters:,} characters, {TIMES} times each"
    )
    for context in contexts:
        files = WordsCheckpoint(VOCABULARY, context)
        loads = loads_of(files, context, characters)
        for name, program in {"": None, **({} if before is None else {", before": before})}.items():
            with served(files, context, program) as server:
                found = take_turns(server, loads, rounds, tokens)
                memory = worker_memory(server)
            report.tables.append(table(f"Context of {context:,} tokens{name}", found))
            report.notes.append(f"{context:,} tokens{name}: afterwards the worker has {memory:.0f} MiB")
            report.targets += targets(context, found) if program is None else []


def loads_of(files: WordsCheckpoint, context: int, characters: int) -> dict[str, PromptClients]:
    texts = [files.longest(context - 1) for _ in range(CLIENTS)]
    ids = [files.tokenizer.encode(text).ids for text in texts]
    refused = {BY_LENGTH: files.text(characters), BY_TOKENS: NOT_ASCII + files.text(characters)}
    return {
        ALONE: PromptClients([]),
        IDS: PromptClients(ids, TIMES, pause=PAUSE),
        TEXTS: PromptClients(texts, TIMES, pause=PAUSE),
        **{name: PromptClients([text], TIMES, 400, PAUSE) for name, text in refused.items()},
    }


def take_turns(server: Server, loads: dict[str, PromptClients], rounds: int, tokens: int) -> Gaps:
    """The first round is not counted: it starts what is not there yet."""
    found: Gaps = {name: [] for name in loads}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as neighbours:
        for number in range(rounds + 1):
            for name, load in loads.items():
                gap = max(load.beside(server.address, tokens, neighbours).gaps) * 1e3
                found[name] += [gap] if number else []
                progress(f"llm-prompts, round {number} of {rounds}: {name}: {gap:.1f} ms")
    return found


@contextmanager
def served(files: WordsCheckpoint, context: int, program: Path | None) -> Iterator[Server]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="msx-benchmark-"))
        files.write(Path(folder))
        options = PackOptions(model_name=MODEL, handler=str(HANDLERS / f"{MODEL}.py"), extra_files=folder)
        store = stack.enter_context(store_of(options, json.dumps(config(context))))
        yield stack.enter_context(started(store, MODEL, tokens=False, program=program))


def config(context: int) -> dict[str, Any]:
    """model-config.yaml."""
    own = {"stepSeconds": STEP_MS / 1e3}
    return {"minWorkers": 1, "maxWorkers": 1, "maxTotalTokens": context, "slotBuckets": [16], "nullModel": own}


def worker_memory(server: Server) -> float:
    """Resident MiB, when the worker's own processes have ended, or `PATIENCE` seconds have passed."""
    [worker] = server.workers()
    own, until = psutil.Process(worker.pid), time.monotonic() + PATIENCE
    while (children := own.children(recursive=True)) and time.monotonic() < until:
        time.sleep(1)
    return sum(one.memory_info().rss for one in (own, *children)) / MEBIBYTE


def table(title: str, found: Gaps) -> Table:
    rows = [[name, figure(median(gaps)), spread(gaps), *of_others(name, found)] for name, gaps in found.items()]
    return Table(title, ("sent meanwhile", "longest gap, ms", "lowest – highest", "of token ids", "added, ms"), rows)


def of_others(name: str, found: Gaps) -> list[str]:
    ratio = f"{paired_ratio(found[TEXTS], found[IDS])[0]:.2f}" if name == TEXTS else ""
    return [ratio, f"{added(name, found):.1f}" if name in (BY_LENGTH, BY_TOKENS) else ""]


def added(name: str, found: Gaps) -> float:
    """The median of the rounds' differences, in ms."""
    return median([one - other for one, other in zip(found[name], found[ALONE], strict=True)])


def targets(context: int, found: Gaps) -> list[Target]:
    ratio = paired_ratio(found[TEXTS], found[IDS])[0]
    refused = {name: added(name, found) for name in (BY_LENGTH, BY_TOKENS)}
    gap = Target(
        f"{context:,} tokens: longest gap, of token ids", f"{ratio:.2f}", f"≤ {MOST_RATIO:g}", ratio <= MOST_RATIO
    )
    return [
        gap,
        *(
            Target(f"{context:,} tokens: added by {name}, ms", f"{more:.1f}", f"≤ {MOST_ADDED:g}", more <= MOST_ADDED)
            for name, more in refused.items()
        ),
    ]
