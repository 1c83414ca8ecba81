"""The share that each kind of operator has of a step of the engine's runner on a CPU."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.engines.engines import model_option, models
from benchmarks.llm.peer import Peer, peer
from benchmarks.reports.figures import figure, median
from benchmarks.reports.table import Report, Table

QUICK = ("--steps", "2", "--texts", "2", "--prompt", "8", "--context", "64")
LEAST = 0.005
"""Operators of a smaller share of every step share a row."""
OTHERS, OUTSIDE = "the others", "outside of operators"


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step, and by operator: calls and seconds."""

    title: str
    seconds: float
    operators: Mapping[str, tuple[float, float]]

    @property
    def outside(self) -> float:
        """Seconds between operators: launches, inputs, logits."""
        return self.seconds - sum(seconds for _, seconds in self.operators.values())

    def share(self, name: str) -> float:
        return self.operators.get(name, (0, 0.0))[1] / self.seconds


@benchmark("llm-operators")
@model_option
@click.option("--texts", multiple=True, default=(1, 4, 16), type=click.IntRange(1, 256), help="At once; repeatable.")
@click.option("--prompt", "prompts", multiple=True, default=(32, 128), type=click.IntRange(2, 512), help="Tokens.")
@click.option("--context", default=128, type=click.IntRange(64, 4096), help="Positions that texts attend to.")
@click.option("--steps", default=10, type=click.IntRange(1), help="Of each kind, with the profiler and without it.")
def main(
    report: Report,
    folders: tuple[Path, ...],
    texts: tuple[int, ...],
    prompts: tuple[int, ...],
    context: int,
    steps: int,
) -> None:
    """Steps of the engine's runner on a CPU, by operators."""
    for title, folder in models(folders):
        with folder as path, _runner(path, texts, prompts, context) as runner:
            found = list(_measured(runner, sorted({*texts}), sorted({*prompts}), context, steps))
        report.tables.append(table(title, found))
    report.notes.append(
        f"Texts attend to {context} positions; {steps} steps of each kind; milliseconds of a step, and calls of an "
        "operator. A step is measured without the profiler, operators with it"
    )


def _runner(folder: Path, texts: Sequence[int], prompts: Sequence[int], context: int) -> AbstractContextManager[Peer]:
    longest = max(context, *prompts)
    config = {
        "maxTotalTokens": longest,
        "slotBuckets": sorted({*texts}),
        "contextBuckets": [context, longest],
        "prefillBuckets": sorted({*prompts}),
        "maxBatchPrefillTokens": max(prompts),
        "mindspore": {"compileCache": False},
    }
    command = "-m", "benchmarks.llm.bare_runner", str(folder.absolute()), json.dumps(config)
    return peer("the runner", Path(sys.executable), *command)


def _measured(
    runner: Peer, texts: Sequence[int], prompts: Sequence[int], context: int, steps: int
) -> Iterator[StepTimes]:
    for count in texts:
        yield _one(runner, f"{count} text{'s' if count > 1 else ''}", steps, slots=count, position=context - 1)
    for tokens in prompts:
        yield _one(runner, f"a prompt of {tokens}", steps, prompt=tokens)


def _one(runner: Peer, title: str, steps: int, **of: int) -> StepTimes:
    answer = runner.ask("operators", steps=steps, **of)
    progress(f"llm-operators: {title}")
    return StepTimes(title, median(answer["seconds"]), answer["operators"])


def table(title: str, found: Sequence[StepTimes]) -> Table:
    names = {name for step in found for name in step.operators}
    shown = sorted(
        (name for name in names if max(step.share(name) for step in found) >= LEAST),
        key=lambda name: -max(step.share(name) for step in found),
    )
    columns = ("operator", *(step.title for step in found))
    rows = [(name, *(_cell(*step.operators.get(name, (0, 0.0)), step.seconds) for step in found)) for name in shown]
    others = (OTHERS, *(_cell(*_rest(step, shown), step.seconds) for step in found))
    outside = (OUTSIDE, *(_cell(0, step.outside, step.seconds) for step in found))
    whole = ("a step", *(f"{figure(step.seconds * 1e3)} ms" for step in found))
    return Table(title, columns, [*rows, others, outside, whole])


def _rest(step: StepTimes, shown: Sequence[str]) -> tuple[float, float]:
    left = [it for name, it in step.operators.items() if name not in shown]
    return sum(calls for calls, _ in left), sum(seconds for _, seconds in left)


def _cell(calls: float, seconds: float, whole: float) -> str:
    times = f" ({calls:.0f} ×)" if calls else ""
    return f"{figure(seconds * 1e3)} ms, {seconds / whole:.0%}{times}"
