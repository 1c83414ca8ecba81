"""Many streams at once: events per second, compared with mosec's server-sent events in the same run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from benchmarks.cli.benchmark import benchmark
from benchmarks.contests.before import before_option, compare, name_before
from benchmarks.contests.contest import Contestant, rotated, table
from benchmarks.contests.rounds import play_round, settling_rounds
from benchmarks.contests.verdicts import pairs_with_before, targets
from benchmarks.load.streams import EVENT, StreamLoad, allow_files
from benchmarks.peers import mosec
from benchmarks.peers.venv import NotInstalled
from benchmarks.reports.figures import figure, median, spread
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Report, Table
from benchmarks.servers.bare_streams import bare_server
from benchmarks.servers.msx import serve

QUICK = ("--rounds", "1", "--streams", "100", "--seconds", "0.2")
TARGET = 5.0
"""A multiple of the events per second of mosec's best setting."""
BATCH = 32
OURS = {"msx, async handler": "chunks_async", f"msx, batch {BATCH}": "chunks"}
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nmaxConcurrent: {streams}\nbatchSize: {batch}\njobQueueSize: {streams}\n"
MOSEC = f"mosec {mosec.VERSION}"
PEERS = {MOSEC: (1, 1), f"{MOSEC}, batch {BATCH}": (BATCH, 1), f"{MOSEC}, batch {BATCH}, 2 workers": (BATCH, 2)}
"""max_batch_size and num."""
PROGRAM = """\
from mosec import Server, SSEWorker


class Chunks(SSEWorker):
    def forward(self, data):
        orders = [row["chunks"] for row in (data if isinstance(data, list) else [data])]
        for number in range(max(orders)):
            for index, order in enumerate(orders):
                if number < order:
                    self.send_stream_event("#23456789abcdef0", index)
        return data


if __name__ == "__main__":
    server = Server()
    server.append_worker(Chunks, max_batch_size={batch}, num={workers})
    server.run()
"""
AT_ONCE = (1, 10)
"""Events in one write of the server that only writes."""


@benchmark("stream")
@click.option("--rounds", default=5, type=click.IntRange(1), help="Every server takes its turn in each round.")
@click.option("--seconds", default=1.0, type=click.FloatRange(0.1), help="Of each turn, at least.")
@click.option("--streams", default=1000, type=click.IntRange(1), help="At once, each on a connection of its own.")
@click.option("--chunks", default=100, type=click.IntRange(1), help="Of each stream.")
@click.option("--peer/--no-peer", default=True, help="Compare with mosec.")
@before_option
def main(
    report: Report, rounds: int, seconds: float, streams: int, chunks: int, peer: bool, before: Path | None
) -> None:
    """Events per second of many streams at once; both servers send the same bytes as fast as they can.

    All servers run for the whole time, but only one has load at a time; they take turns in rounds. The ratio is the
    median of the rounds' ratios.
    """
    allow_files(streams)
    load = StreamLoad(chunks)
    with ExitStack() as stack:
        contestants = [_ours(stack, name, streams) for name in OURS]
        contestants += [_ours(stack, name, streams, before) for name in OURS] if before is not None else []
        contestants += _peers(stack, streams, report) if peer else []
        play_round(lambda _: load, contestants, [streams], 0.1)
        for contestant in contestants:
            contestant.turns.clear()  # that was the warm-up
        pairs = partial(pairs_with_before, contestants, [streams], unit="event", load="stream")
        for number in settling_rounds("stream", rounds, pairs):
            play_round(lambda _: load, rotated(contestants, number), [streams], seconds)
    report.notes += [
        f"Load: {streams:,} streams at once, {chunks} events of {len(EVENT)} bytes each; {number + 1} rounds",
        f"The client took at most {max(load.cores):.2f} of a core while it read from these servers",
    ]
    _compare(report, contestants, streams, f"{streams:,} streams of {chunks} events")
    compare(report, pairs(), what="Streams")
    report.tables.append(_client(streams, chunks, rounds))


CAPTION = "The events that clients get in a second, all streams together; longer is better."


def _compare(report: Report, contestants: Sequence[Contestant], streams: int, title: str) -> None:
    """Compares with the best of mosec's settings."""
    rates = {one.name: one.rates(streams) for one in contestants}
    best = [max(PEERS, key=lambda name: median(rates[name]))] if rates.keys() >= PEERS.keys() else []
    report.tables.append(table(title, contestants, streams, best, unit="event", latency="first event "))
    report.plots.append(Bars("stream", "Server-sent events of 24 bytes", "events/s", {title: rates}, CAPTION))
    for name in best:
        report.targets += targets(contestants, streams, [*OURS], name, TARGET, title, unit="event")


def _ours(stack: ExitStack, setting: str, streams: int, before: Path | None = None) -> Contestant:
    model, config = OURS[setting], CONFIG.format(streams=streams, batch=BATCH)
    server = stack.enter_context(serve(model, config, program=before))
    name = setting if before is None else name_before(setting)
    return Contestant(name, server.address, f"/predictions/{model}", server.process.pid)


def _peers(stack: ExitStack, streams: int, report: Report) -> list[Contestant]:
    """mosec's default limits would refuse so many streams, or cut them after three seconds."""
    flags = ("--capacity", str(2 * streams), "--timeout", "60000")
    found = []
    try:
        for name, (batch, workers) in PEERS.items():
            program = PROGRAM.format(batch=batch, workers=workers)
            address, pid = stack.enter_context(mosec.serve(program, *flags))
            found.append(Contestant(name, address, mosec.PATH, pid))
    except NotInstalled as missing:
        report.notes.append(f"No comparison: {missing}")
    return found


def _client(streams: int, chunks: int, rounds: int) -> Table:
    """The rate at which the client reads from a server that only writes the bytes."""
    return Table(
        "The client, on a server that only writes these bytes",
        ("events in a write", "events/s", "lowest – highest", "client, of a core"),
        [_client_row(streams, chunks, rounds, at_once) for at_once in AT_ONCE],
    )


def _client_row(streams: int, chunks: int, rounds: int, at_once: int) -> Sequence[str]:
    load = StreamLoad(chunks)
    with bare_server(streams, chunks, at_once) as address:
        results = [load.run(address, "/", connections=streams, seconds=0.1) for _ in range(rounds)]
    rates = [result.per_second for result in results]
    return [str(at_once), figure(median(rates)), spread(rates), f"{median(load.cores):.2f}"]
