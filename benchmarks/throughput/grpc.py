"""Cost of a request over gRPC: unary echo, compared with TorchServe and bare grpc.aio in the same run."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click
import grpc

from benchmarks.cli.benchmark import benchmark
from benchmarks.contests.before import before_option, compare, name_before
from benchmarks.contests.contest import Contestant, rotated, table
from benchmarks.contests.rounds import play_round, settling_rounds
from benchmarks.contests.verdicts import pairs_with_before, targets
from benchmarks.load.client import Address
from benchmarks.load.h2load import grpc_load
from benchmarks.peers import torchserve
from benchmarks.peers.venv import NotInstalled
from benchmarks.reports.plot import Bars
from benchmarks.reports.table import Report
from benchmarks.servers import bare_grpc
from benchmarks.servers.bare_grpc import SERVICE, Request, Response
from benchmarks.servers.msx import serve

QUICK = ("--rounds", "2", "--seconds", "2", "--warm-up", "2")
TARGET = 3.0
OURS, PEER, BARE = "msx", f"TorchServe {torchserve.VERSION}", "bare grpc.aio"
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 1\n"
PATH = f"/{SERVICE}/Predictions"
LIMIT = 30.0


@benchmark("grpc")
@click.option("--rounds", default=5, type=click.IntRange(1), help="Every server takes its turn in each round.")
@click.option("--seconds", default=5.0, type=click.FloatRange(1), help="Length of each turn.")
@click.option(
    "--warm-up",
    default=15.0,
    type=click.FloatRange(1),
    help="Seconds per server before the counted rounds, in which Java compiles.",
)
@click.option("--in-flight", default=32, type=click.IntRange(4), help="Calls at a time, over 4 connections.")
@click.option("--body", default=128, type=click.IntRange(0), help="Bytes.")
@click.option("--peer/--no-peer", default=True, help="Compare with TorchServe.")
@before_option
def main(
    report: Report,
    rounds: int,
    seconds: float,
    warm_up: float,
    in_flight: int,
    body: int,
    peer: bool,
    before: Path | None,
) -> None:
    """Unary predictions per second of an echo model: batchSize 1, one worker each, load by h2load.

    Beside them gRPC's own server in Python, which answers without a worker. All run for the whole time
    and take turns; the ratio is the median of the rounds' ratios.
    """
    data = b"x" * body
    with ExitStack() as stack:
        contestants = [*_ours(stack, before), _bare(stack), *(_peer(stack, report) if peer else [])]
        for contestant in contestants:
            _check_echo(contestant, data)
        answer = Response(prediction=data).SerializeToString()
        pairs = partial(pairs_with_before, contestants, [in_flight], load="call")
        loads = {
            one.name: stack.enter_context(grpc_load(_request(one.name, data).SerializeToString(), answer))
            for one in contestants
        }
        for contestant in contestants:
            loads[contestant.name].run(contestant.address, PATH, connections=in_flight, seconds=warm_up)
        for number in settling_rounds("grpc", rounds, pairs):
            play_round(lambda one: loads[one.name], rotated(contestants, number), [in_flight], seconds)
        version = loads[OURS].version
        report.notes.append(f"Load: {version}, 1 thread, {number + 1} rounds of {seconds:g} s, {body} bytes a request")
    title = f"Unary echo, {in_flight} in flight"
    report.tables.append(table(title, contestants, in_flight, [PEER, BARE]))
    rates = {one.name: one.rates(in_flight) for one in contestants}
    report.plots.append(Bars("grpc", f"gRPC, {body} bytes", "requests/s", {title: rates}, CAPTION))
    report.targets += targets(contestants, in_flight, [OURS], PEER, TARGET, f"{in_flight} in flight")
    compare(report, pairs(), what="Unary echo")


CAPTION = "The calls that each server answers in a second; longer is better."


def _ours(stack: ExitStack, before: Path | None) -> list[Contestant]:
    others = [_msx(stack, name_before(OURS), before)] if before is not None else []
    return [_msx(stack, OURS, None), *others]


def _msx(stack: ExitStack, name: str, program: Path | None) -> Contestant:
    server = stack.enter_context(serve("echo", CONFIG, program=program))
    host, _, port = server.info["grpc_inference"].rpartition(":")
    return Contestant(name, Address(host, int(port)), PATH, server.process.pid)


def _bare(stack: ExitStack) -> Contestant:
    address, pid = stack.enter_context(bare_grpc.serve_echo())
    return Contestant(BARE, address, PATH, pid)


def _peer(stack: ExitStack, report: Report) -> list[Contestant]:
    try:
        peer = stack.enter_context(torchserve.serve_echo())
        return [Contestant(PEER, peer.grpc, PATH, peer.pid)]
    except NotInstalled as missing:
        report.notes.append(f"No comparison: {missing}")
        return []


def _request(name: str, data: bytes) -> Any:
    return Request(model_name=torchserve.MODEL if name == PEER else "echo", input={"body": data})


def _check_echo(contestant: Contestant, data: bytes) -> None:
    with grpc.insecure_channel(f"{contestant.address.host}:{contestant.address.port}") as channel:
        call = channel.unary_unary(PATH, Request.SerializeToString, Response.FromString)
        answer = call(_request(contestant.name, data), timeout=LIMIT).prediction
    if answer != data:
        raise click.ClickException(f"{contestant.name} does not echo: {answer[:200]!r}")
