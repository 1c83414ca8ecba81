"""A language model: tokens a second, waiting times under load, what a step and a start are made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.llm import decode, load, prompt, step
from benchmarks.llm.checkpoint import Checkpoint
from benchmarks.llm.setting import SLOTS, VERSIONS, Setting, setting, with_peers
from benchmarks.peers.venv import NotInstalled
from benchmarks.reports.figures import figure
from benchmarks.reports.table import Report, Table, Target

QUICK = ("--rounds", "1", "--steps", "8", "--requests", "20", "--tries", "1", "--long", "1")
MOST_GRAPHS, COLD, CACHED = 12, 30.0, 8.0
"""The promise: graphs of the decoding step; seconds."""


@benchmark("llm")
@click.option("--texts", multiple=True, default=SLOTS, type=click.IntRange(1, SLOTS[-1]), help="At once; repeatable.")
@click.option("--rounds", default=5, type=click.IntRange(1), help="Every server takes its turn in each round.")
@click.option("--steps", default=48, type=click.IntRange(2, 128), help="Steps of each turn.")
@click.option("--requests", default=100, type=click.IntRange(10), help="Of each load.")
@click.option("--tries", default=4, type=click.IntRange(1), help="Loads, to find the highest one.")
@click.option("--long", default=3, type=click.IntRange(1), help="Prompts of 2,000 tokens, one after the other.")
@click.option("--chunk", default=32, type=click.IntRange(1, 512), help="Tokens of a prompt between two steps.")
@click.option("--peer/--no-peer", default=True, help="Compare with torch, Hugging Face transformers and CTranslate2.")
def main(
    report: Report,
    texts: tuple[int, ...],
    rounds: int,
    steps: int,
    requests: int,
    tries: int,
    long: int,
    chunk: int,
    peer: bool,
) -> None:
    """A Llama of 32 million parameters in float32, with random weights, which all contestants read from one file."""
    with _setting(report, chunk, peer=peer) as all_:
        decoded = decode.measure(all_, sorted({*texts}), rounds, steps, _say)
        first = prompt.measure(all_, rounds, _say)
        one_step = step.measure_step(all_)
        disturbed = step.measure_disturbance(all_, long, _say)
        loaded = load.measure(all_, decoded.served(max(texts)), requests, tries, _say)
        report.notes += [
            _note(all_, rounds, steps, requests, chunk),
            f"Of the tokens that static batches compute, {loaded.useful:.0%} are wanted",
        ]
        report.tables += [
            decoded.table(),
            first.table(),
            loaded.table(),
            one_step.table(),
            disturbed.table(),
            _warm_up(all_),
        ]
        report.plots += [decoded.plot(), loaded.plot()]
        report.targets += [
            *decoded.targets(),
            *first.targets(),
            loaded.target(),
            one_step.target(),
            disturbed.target(),
            *_starts(all_),
        ]


@contextmanager
def _setting(report: Report, chunk: int, *, peer: bool) -> Iterator[Setting]:
    """Setting without the peers where they cannot be installed."""
    checkpoint = Checkpoint()
    with TemporaryDirectory(prefix="msx-benchmark-") as folder, ExitStack() as stack:
        checkpoint.write(Path(folder))
        peers = None
        if peer:
            try:
                peers = stack.enter_context(with_peers(Path(folder)))
            except NotInstalled as missing:
                report.notes.append(f"No comparison: {missing}")
        yield stack.enter_context(setting(Path(folder), checkpoint.vocabulary, chunk, peers))


def _note(all_: Setting, rounds: int, steps: int, requests: int, chunk: int) -> str:
    peers = ", ".join(f"{name} {version}" for name, version in VERSIONS.items())
    return (
        f"Model: {Checkpoint().parameters / 1e6:.0f} M parameters, float32; {rounds} rounds of {steps} steps; loads of "
        f"{requests} requests; prompts in chunks of {chunk} tokens{'; ' + peers if all_.torch else ''}"
    )


def _warm_up(all_: Setting) -> Table:
    kinds = {"cold": all_.cold, "from the cache": all_.cached}
    rows = [(name, str(one.decoding), str(len(one.graphs)), figure(one.seconds)) for name, one in kinds.items()]
    ready = ("cold, from the start of the server to its readiness", "", "", figure(all_.ready))
    return Table("Warm-up", ("compiled", "graphs of decoding", "of all", "s"), [*rows, ready])


def _starts(all_: Setting) -> list[Target]:
    graphs, seconds = (
        all_.cold.decoding,
        {"cold": (all_.cold.seconds, COLD), "from the cache": (all_.cached.seconds, CACHED)},
    )
    return [
        Target("graphs of decoding", str(graphs), f"≤ {MOST_GRAPHS}", graphs <= MOST_GRAPHS),
        *(
            Target(f"warm-up {how}, s", figure(took), f"≤ {most:g}", took <= most)
            for how, (took, most) in seconds.items()
        ),
    ]


def _say(text: str) -> None:
    progress(f"llm: {text}")
