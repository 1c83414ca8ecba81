"""More requests at once than the queue takes: how many are lost, by the clients' way to retry."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Sequence
from dataclasses import replace

import click

from benchmarks.cli.benchmark import benchmark, progress
from benchmarks.contests.contest import rotated
from benchmarks.load.retries import Policy, Turn, ask_all, by_milliseconds, by_seconds, every_second, own_back_off
from benchmarks.reports.figures import figure, median, spread
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Report, Table, Target
from benchmarks.servers.msx import Server, serve

QUICK = ("--rounds", "1", "--clients", "60", "--queue", "20", "--model-time", "0.05")
SERVICE = "work"
CONFIG = """\
minWorkers: 1
maxWorkers: 1
batchSize: {batch}
jobQueueSize: {queue}
loadSeconds: 0
workSeconds: {seconds}
"""
LIMIT = 300.0
"""Seconds of one turn."""
OWN = "own back-off, 0.5 s to 8 s, no header"
CONSTANT = "1 s, whatever the queue is like"
OBEYS: dict[str, Policy] = {"obeys retry-after-ms": by_milliseconds, "obeys Retry-After": by_seconds}
POLICIES: dict[str, Policy] = {**OBEYS, OWN: own_back_off, CONSTANT: every_second}


@benchmark("overload")
@click.option("--rounds", default=8, type=click.IntRange(1), help="Every policy takes its turn in each round.")
@click.option("--clients", default=250, type=click.IntRange(1), help="All ask at once, one request each.")
@click.option("--retries", default=5, type=click.IntRange(0), help="Of each client, before its request is lost.")
@click.option("--queue", default=64, type=click.IntRange(1), help="The model's jobQueueSize.")
@click.option("--batch-size", default=4, type=click.IntRange(1), help="The model's batchSize.")
@click.option("--model-time", default=0.2, type=click.FloatRange(0.001), help="Seconds of a batch.")
def main(
    report: Report, rounds: int, clients: int, retries: int, queue: int, batch_size: int, model_time: float
) -> None:
    """A fixed number of requests, far more than the queue takes: who gets an answer, and after how many tries.

    A turn ends when each of its clients has got an answer or has given up. Policies take turns in rounds.
    """
    config = CONFIG.format(batch=batch_size, queue=queue, seconds=model_time)
    turns: dict[str, list[Turn]] = {name: [] for name in POLICIES}
    with serve(SERVICE, config) as server:
        for number in range(rounds):
            for name in rotated([*POLICIES], number):
                turns[name].append(_turn(server, POLICIES[name], clients, retries))
            progress(f"overload: round {number + 1} of {rounds}")
    report.notes.append(
        f"Work: {clients} requests at once, {retries} retries each; {model_time * 1000:g} ms a batch of up to "
        f"{batch_size}, jobQueueSize {queue}; {rounds} rounds"
    )
    report.tables.append(_table(turns))
    retried = {name: [_mean(turn.retries) for turn in some] for name, some in turns.items()}
    report.plots.append(Bars("overload", f"{clients} requests at once", "retries a request", {"": retried}, CAPTION))
    report.targets += [target(name, turns[name], turns[OWN]) for name in OBEYS]


CAPTION = (
    "How often a refused client asks again until it is answered, by what it makes of `Retry-After`; shorter is better."
)


def _turn(server: Server, policy: Policy, clients: int, retries: int) -> Turn:
    before = _batches(server)
    work = ask_all(server.address, f"/predictions/{SERVICE}", clients, policy, retries)
    turn = asyncio.run(asyncio.wait_for(work, LIMIT))
    (jobs, batches), (jobs_before, batches_before) = _batches(server), before
    return replace(turn, batch=(jobs - jobs_before) / max(batches - batches_before, 1))


def _batches(server: Server) -> tuple[float, float]:
    """Requests that were in batches, and batches, so far."""
    with urllib.request.urlopen(f"{server.info['metrics']}/metrics", timeout=LIMIT) as reply:
        lines = [line.split() for line in reply.read().decode().splitlines()]
    found = {words[0].partition("{")[0]: float(words[-1]) for words in lines if words and words[0] != "#"}
    return found.get("msx_batch_size_sum", 0.0), found.get("msx_batch_size_count", 0.0)


def _table(turns: dict[str, list[Turn]]) -> Table:
    columns = ("a refused client", "lost", "worst round", "retries", "retries a request", "the last answer, s", "batch")
    return Table("What became of the requests, all rounds", columns, [_row(name, some) for name, some in turns.items()])


def _row(name: str, turns: Sequence[Turn]) -> Sequence[str]:
    lost = [turn.lost for turn in turns]
    retries = [count for turn in turns for count in turn.retries]
    ends = [max(turn.seconds) for turn in turns if turn.seconds]
    return (
        name,
        str(sum(lost)),
        str(max(lost)),
        figure(sum(retries)),
        figure(_mean(retries)),
        f"{figure(median(ends))} ({spread(ends)})" if ends else "none",
        figure(_mean([turn.batch for turn in turns])),
    )


def target(name: str, turns: Sequence[Turn], without: Sequence[Turn]) -> Target:
    """Target: in each round at most as many as in the same round without the header."""
    worst = max(turn.lost - other.lost for turn, other in zip(turns, without, strict=True))
    return Target(f"{name}: requests lost more than without it, in the worst round", str(worst), "≤ 0", worst <= 0)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
