"""Cost on the host of streams of a language model whose model computes nothing: processor time of worker and frontend,
and how evenly the tokens come."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.contests.before import compare
from benchmarks.contests.interleaved import cores_apart
from benchmarks.llm.cold import after_sleep
from benchmarks.llm.host_load import HostFigures, HostLoad, table
from benchmarks.llm.host_streams import stream_texts
from benchmarks.llm.null_checkpoint import NullCheckpoint
from benchmarks.llm.trace import gaps, percentile, together
from benchmarks.reports.table import Report
from benchmarks.servers.msx import Server, handlers_of, started, store_of
from benchmarks.servers.processor import processor_seconds
from msx_archiver.options import PackOptions

QUICK = ("--rounds", "1", "--steps", "20", "--texts", "4", "--step-ms", "2")
MODEL = "null_text"
TEXTS = (1, 16, 64, 256)
STEP_MS = (0.0, 20.0)
VOCABULARY = 8192
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "top-p": {"temperature": 0.8, "top_p": 0.9, "top_k": 50, "seed": 1},
    "logprobs": {"logprobs": 5},
    "penalties": {"frequency_penalty": 0.2, "presence_penalty": 0.1},
    "JSON schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "it", "schema": SCHEMA}}},
}
PAUSE = 0.05
"""Seconds for what is left over of one load before the next one."""


@benchmark("llm-host")
@click.option("--texts", multiple=True, default=TEXTS, type=click.IntRange(1, 256), help="At once; repeatable.")
@click.option("--kind", "-k", "kinds", multiple=True, default=tuple(KINDS), type=click.Choice([*KINDS]))
@click.option("--rounds", default=3, type=click.IntRange(1), help="All loads take turns in each round.")
@click.option("--steps", default=300, type=click.IntRange(2, 4000), help="Of each load.")
@click.option(
    "--step-ms",
    multiple=True,
    default=STEP_MS,
    type=click.FloatRange(0),
    help="What the model takes for a step; repeatable.",
)
@click.option("--before", type=click.Path(exists=True, path_type=Path), help="msx-serve of another checkout.")
def main(
    report: Report,
    texts: tuple[int, ...],
    kinds: tuple[str, ...],
    rounds: int,
    steps: int,
    step_ms: tuple[float, ...],
    before: Path | None,
) -> None:
    """Processor time a step and a token of engine and frontend: the model takes a fixed time, and computes nothing."""
    report.notes.append(f"{rounds} rounds of {steps} steps")
    for ms in step_ms:
        loads = [HostLoad(kind, count) for kind in kinds for count in sorted({*texts})]
        take_turns(loads, rounds, steps, ms / 1e3, before)
        report.tables.append(table(ms, loads))
        costs = [pair for load in loads if before for pair in load.costs()]
        compare(report, [load.pair(ms) for load in loads if before], what=f"Steps of {ms:g} ms", costs=costs)
        if ms:
            report.notes.append(slower(ms))
        else:
            report.targets += [target for load in loads for target in load.targets()]


def take_turns(loads: list[HostLoad], rounds: int, steps: int, step_seconds: float, before: Path | None) -> None:
    with served(step_seconds) as server, served(step_seconds, before) if before else nullcontext() as other:
        families = [one.family() for one in (server, other) if one and other]
        with cores_apart(families) if families else nullcontext():
            for number in range(rounds):
                for load in loads:
                    for one, found in load.turns(number, server, other):
                        measure(one, load.texts, steps, KINDS[load.kind], found)
                progress(f"llm-host: {step_seconds * 1e3:g} ms, round {number + 1} of {rounds}: {loads[-1]}")


def slower(ms: float) -> str:
    times = f"{after_sleep(ms / 1e3):.1f}"
    return f"After a sleep of {ms:g} ms, a fixed piece of Python takes {times} times the processor time here"


@contextmanager
def served(step_seconds: float, program: Path | None = None) -> Iterator[Server]:
    """`program`: another msx-serve than this environment's, with the handler of that checkout and its imports."""
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder:
        NullCheckpoint(VOCABULARY).write(Path(folder))
        options = PackOptions(model_name=MODEL, handler=str(handlers_of(program) / f"{MODEL}.py"), extra_files=folder)
        with (
            store_of(options, json.dumps(config(step_seconds))) as store,
            started(store, MODEL, tokens=False, program=program) as server,
        ):
            yield server


def config(step_seconds: float) -> dict[str, Any]:
    """model-config.yaml."""
    return {
        "minWorkers": 1,
        "maxWorkers": 1,
        "maxConcurrent": 1024,
        "slotBuckets": TEXTS,
        "maxTotalTokens": 4096,
        "nullModel": {"stepSeconds": step_seconds},
    }


def measure(server: Server, texts: int, steps: int, fields: Mapping[str, Any], found: HostFigures) -> None:
    """Measure; to read the prompts takes time, too, which is spread over all steps.

    Raises click.ClickException where the streams were never all at once.
    """
    [worker] = server.workers()
    pids = worker.pid, server.process.pid
    before = [processor_seconds(pid) for pid in pids]
    traces = stream_texts(server.address, texts, steps, fields)
    time.sleep(PAUSE)
    spent = [processor_seconds(pid) - earlier for pid, earlier in zip(pids, before, strict=True)]
    begin, end = together(traces)
    if not any(begin < at <= end for one in traces for at in one.instants):
        raise click.ClickException(f"{texts} streams of {steps} steps were never all at once: take more --steps.")
    tokens = texts * steps
    found.worker_ms.append(spent[0] * 1e3 / steps)
    found.worker_micros.append(spent[0] * 1e6 / tokens)
    found.frontend_micros.append(spent[1] * 1e6 / tokens)
    found.rate.append(sum(begin < at <= end for one in traces for at in one.instants) / (end - begin))
    found.p99_ms.append(percentile(gaps(traces), 0.99) * 1e3)
