"""Adapters: what a step takes in which each text has one of four, beside a step of the model without."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.llm.adapter_files import write_adapters
from benchmarks.llm.checkpoint import Checkpoint
from benchmarks.llm.peer import Peer, peer
from benchmarks.reports.figures import figure, median, paired_ratio
from benchmarks.reports.table import Report, Table, Target

QUICK = ("--rounds", "1", "--steps", "4")
TEXTS, CONTEXT = (1, 4, 16), 256
START = 32
"""Tokens that each text has before."""
MOST = 1.25
"""The promise, of a step without, at the most texts."""
COLUMNS = ("texts", "without, ms", "with adapters, ms", "ratio")


class Times(NamedTuple):
    """Seconds of a step, and the median of the ratios step by step: a figure a round."""

    with_: list[float]
    without: list[float]
    ratios: list[float]


@benchmark("llm-adapters")
@click.option("--rounds", default=9, type=click.IntRange(1), help="Of steps in turn, with adapters and without.")
@click.option("--steps", default=64, type=click.IntRange(2, 200), help="Of each, in each round.")
@click.option("--adapters", default=4, type=click.IntRange(1, 16), help="Of which the texts have one each, in turn.")
@click.option("--rank", default=16, type=click.IntRange(1, 64), help="Of each adapter.")
def main(report: Report, rounds: int, steps: int, adapters: int, rank: int) -> None:
    """A step of the runner of a Llama of 32 million parameters, with adapters of all its linear layers and without."""
    times = {texts: Times([], [], []) for texts in TEXTS}
    with _runners(adapters, rank) as both:
        for number in range(rounds):
            for texts, found in times.items():
                _measure(both, texts, steps, found)
            progress(f"llm-adapters: round {number + 1} of {rounds}")
    report.notes.append(
        f"{rounds} rounds of {steps} steps with adapters and as many without, in turn; {adapters} adapters of rank "
        f"{rank} for all linear layers"
    )
    report.tables.append(Table("A step", COLUMNS, [_row(texts, found) for texts, found in times.items()]))
    ratio = median(times[TEXTS[-1]].ratios)
    what = f"{TEXTS[-1]} texts with {adapters} adapters: of a step without"
    report.targets.append(Target(what, f"{ratio:.2f}", f"≤ {MOST:g}", ratio <= MOST))


def _measure(both: Peer, texts: int, steps: int, found: Times) -> None:
    seconds: dict[str, list[float]] = both.ask("steps", slots=texts, start=START, steps=steps)
    with_, without = seconds["with"], seconds["without"]
    found.with_.append(median(with_))
    found.without.append(median(without))
    found.ratios.append(paired_ratio(with_, without)[0])


def _row(texts: int, found: Times) -> Sequence[str]:
    ratio = f"{median(found.ratios):.2f} ({min(found.ratios):.2f} – {max(found.ratios):.2f})"
    return (str(texts), *(figure(1000 * median(one)) for one in (found.without, found.with_)), ratio)


@contextmanager
def _runners(adapters: int, rank: int) -> Iterator[Peer]:
    checkpoint = Checkpoint()
    shapes = {"maxTotalTokens": CONTEXT, "contextBuckets": [CONTEXT], "slotBuckets": TEXTS, "prefillBuckets": [32]}
    yaml = json.dumps({**shapes, "adapters": {"maxLoras": adapters}, "mindspore": {"compileCache": False}})
    with ExitStack() as stack:
        plain, adapted = (Path(stack.enter_context(TemporaryDirectory(prefix="msx-benchmark-"))) for _ in range(2))
        checkpoint.write(plain)
        for file in plain.iterdir():
            (adapted / file.name).symlink_to(file)
        write_adapters(checkpoint, adapted / "adapters", adapters, rank)
        command = "-m", "benchmarks.llm.adapter_runner", str(adapted), str(plain), yaml
        both = stack.enter_context(peer("the runners", Path(sys.executable), *command))
        both.ask("warm_up")
        yield both
