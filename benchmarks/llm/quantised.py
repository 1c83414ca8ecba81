"""Quantised weights: what they take in a CPU's memory, and tokens a second, beside the same model in float32."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.llm.checkpoint import Checkpoint
from benchmarks.llm.peer import Peer, peer
from benchmarks.llm.quantised_checkpoint import CONFIGS, QuantisedCheckpoint
from benchmarks.reports.figures import figure, median, paired_ratio
from benchmarks.reports.table import Report, Table, Target

QUICK = ("--rounds", "1", "--steps", "4", "--layers", "2")
CONTEXT, CHUNK = 64, 32
LIMITS = {"W8A16": 0.35, "W4A16": 0.25}
"""The promise, of the memory of float32's layers."""


@dataclass(frozen=True)
class Found:
    resident: int
    """Bytes of the process, after steps of all graphs."""
    seconds: list[float]
    """Seconds of a step, for each round."""


@benchmark("llm-quantised")
@click.option("--layers", default=8, type=click.IntRange(1), help="Of the model.")
@click.option("--rounds", default=3, type=click.IntRange(1), help="All models take turns in each round.")
@click.option("--steps", default=24, type=click.IntRange(1, CONTEXT - 1), help="Of one text, in a round.")
def main(report: Report, layers: int, rounds: int, steps: int) -> None:
    """Resident memory of weights, and tokens a second of one text, beside float32."""
    wide = Checkpoint(1024, layers, 16, 16, 2816, 8192, CONTEXT)
    thin = Checkpoint(128, layers, 2, 2, 384, 512, CONTEXT)
    others = {kind: _run(thin, [kind], 0, 0)[kind].resident for kind in CONFIGS}
    found = _run(wide, list(CONFIGS), rounds, steps)
    models = {kind: found[kind].resident - others[kind] for kind in CONFIGS}
    embedding = wide.vocabulary * wide.dim * 4
    layers_alone = {kind: size - embedding for kind, size in models.items()}
    report.notes.append(
        f"{wide.parameters - wide.vocabulary * wide.dim:,} parameters. Process: what it has resident after steps of "
        f"all graphs. Model: less that of a process with as many layers {thin.dim} wide, as graphs take as much for "
        f"narrow layers as for wide ones. Layers: less the {embedding >> 20} MiB of the embedding, which is the head, "
        "too, and float32 in all files. All that layers need while they run counts as theirs: codes, scales, a "
        "matrix's floats, activations."
    )
    rows = [_row(kind, models, layers_alone, found) for kind in CONFIGS]
    header = "weights", "process, MiB", "model, MiB", "of float32", "layers, MiB", "of float32", "tokens/s", "ratio"
    report.tables.append(Table("Weights in a CPU's memory", header, rows))
    for kind, limit in LIMITS.items():
        share = layers_alone[kind] / layers_alone["float32"]
        report.targets.append(Target(f"{kind}: memory of float32's", f"{share:.2f}", f"≤ {limit:g}", share <= limit))


def _row(kind: str, models: dict[str, int], layers: dict[str, int], found: dict[str, Found]) -> tuple[str, ...]:
    ratio, low, high = paired_ratio(found["float32"].seconds, found[kind].seconds)
    sizes = (cell for all_kinds in (models, layers) for cell in _sizes(kind, all_kinds))
    rate = figure(1 / median(found[kind].seconds))
    return kind, _mib(found[kind].resident), *sizes, rate, f"{ratio:.2f} ({low:.2f} – {high:.2f})"


def _sizes(kind: str, sizes: dict[str, int]) -> tuple[str, str]:
    return _mib(sizes[kind]), f"{sizes[kind] / sizes['float32']:.2f}"


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f}"


def _run(checkpoint: Checkpoint, kinds: list[str], rounds: int, steps: int) -> dict[str, Found]:
    with ExitStack() as stack:
        runners = {kind: stack.enter_context(_runner(checkpoint, kind)) for kind in kinds}
        found = {kind: Found(_resident(runner), []) for kind, runner in runners.items()}
        for number in range(rounds):
            for kind in kinds[:: 1 if number % 2 else -1]:
                instants = runners[kind].ask("loop", slots=1, start=1, steps=steps + 1)["instants"]
                found[kind].seconds.append((instants[-1] - instants[0]) / steps)
            progress(f"llm-quantised: round {number + 1} of {rounds}")
    return found


def _resident(runner: Peer) -> int:
    size: int = runner.ask("resident")["bytes"]
    return size


@contextmanager
def _runner(checkpoint: Checkpoint, kind: str) -> Iterator[Peer]:
    with TemporaryDirectory(prefix="msx-benchmark-") as folder:
        QuantisedCheckpoint(checkpoint, kind).write(Path(folder))
        command = "-m", "benchmarks.llm.bare_runner", folder, json.dumps(_config())
        with peer(f"the runner of {kind}", Path(sys.executable), *command) as runner:
            runner.ask("text", prompt=list(range(20)), tokens=2)  # compiles its graphs
            progress(f"llm-quantised: {kind}, {checkpoint.dim} wide, is ready")
            yield runner


def _config() -> dict[str, Any]:
    """model-config.yaml."""
    return {
        "maxTotalTokens": CONTEXT,
        "slotBuckets": [1],
        "contextBuckets": [CONTEXT],
        "prefillBuckets": [CHUNK],
        "maxBatchPrefillTokens": CHUNK,
        "mindspore": {"compileCache": False},
    }
