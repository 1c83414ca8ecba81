"""Costs of choosing the next tokens of a step, without a model: by the parameters of sampling, and the width of the
distribution."""

from __future__ import annotations

import time
from collections.abc import Callable

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.reports.figures import figure, median, spread
from benchmarks.reports.table import Report, Table, Target
from msx_llm.sampling import Sampler, choose_all
from msx_sdk.generation import SamplingParams

QUICK = ("--rounds", "2", "--words", "20000")
LIMIT = 8.0
"""ms, of a step at 16 texts with 152,000 words."""
SPREADS = (1, 3, 5)
"""Standard deviations of normally distributed logits. At temperature 1 and top-p 0.9, of 152,000 tokens about 93,000,
7,000 and 110 are left: a language model's distributions are mostly narrower than the last."""
WAYS = {
    "greedy": SamplingParams(temperature=0.0),
    "temperature 1": SamplingParams(),
    "top-p 0.9": SamplingParams(top_p=0.9),
    "top-p 0.9, temperature 0.7": SamplingParams(top_p=0.9, temperature=0.7),
    "top-k 50, top-p 0.9": SamplingParams(top_k=50, top_p=0.9),
    "top-k 1,000, top-p 0.95": SamplingParams(top_k=1_000, top_p=0.95),
    "min-p 0.05": SamplingParams(min_p=0.05),
}
SORTED = "top-p 0.9 by sorting all"
Logits = NDArray[np.float32]


@benchmark("sampling")
@click.option("--rounds", default=30, type=click.IntRange(1), help="All ways take turns in each round.")
@click.option("--texts", default=16, type=click.IntRange(1), help="Of a step.")
@click.option("--words", default=152_000, type=click.IntRange(2), help="Of the vocabulary.")
def main(report: Report, rounds: int, texts: int, words: int) -> None:
    """Milliseconds to choose a token for each text of a step, by the parameters and the width of the distribution."""
    report.notes.append(f"{texts} texts, {words:,} words, {rounds} rounds; median and range of the rounds")
    random = np.random.default_rng(0)
    found = {width: _measured(random, rounds, (texts, words), width) for width in SPREADS}
    rows = [[name, *(_cell(found[width][name]) for width in SPREADS)] for name in (*WAYS, SORTED)]
    report.tables.append(Table("A step, ms", ("", *(f"logits ± {width}" for width in SPREADS)), rows))
    report.targets += [
        _target(name, max(median(found[width][name]) for width in SPREADS)) for name in WAYS if "top-p" in name
    ]


def _measured(random: np.random.Generator, rounds: int, shape: tuple[int, int], width: int) -> dict[str, list[float]]:
    """Each round has logits of its own: a processor learns the ways through the same ones."""
    ways = {name: _chooser(params, shape) for name, params in WAYS.items()} | {SORTED: _sort}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        logits = (random.standard_normal(shape, np.float32) * width).astype(np.float32)
        for name, choose in ways.items():
            began = time.perf_counter()
            choose(logits)
            times[name] += [(time.perf_counter() - began) * 1e3] if number else []
    progress(f"sampling: logits ± {width}")
    return times


def _chooser(params: SamplingParams, shape: tuple[int, int]) -> Callable[[Logits], object]:
    texts, words = shape
    samplers = [Sampler(params, (), words, frozenset([1]), seed) for seed in range(texts)]
    return lambda logits: choose_all(samplers, logits)


def _sort(logits: Logits) -> None:
    """Filter by top-p as it is defined, to measure its cost."""
    for row in logits:
        ordered = np.sort(np.exp(row - row.max()))[::-1]
        sums = ordered.cumsum(dtype=np.float64)
        sums.searchsorted(0.9 * sums[-1])


def _cell(times: list[float]) -> str:
    return f"{figure(median(times))} ({spread(times)})"


def _target(name: str, measured: float) -> Target:
    return Target(f"{name}: ms a step, of the widest", figure(measured), f"≤ {LIMIT:g}", measured <= LIMIT)
