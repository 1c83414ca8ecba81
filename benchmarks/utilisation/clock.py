"""A device that is a clock, by the length of its calls and the Python around them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import click
import httpx

from benchmarks.contests.contest import Contestant
from benchmarks.handlers.measured_calls import FIGURES
from benchmarks.load.closed_loop import ClosedLoop
from benchmarks.peers import mosec
from benchmarks.peers.venv import NotInstalled, install
from benchmarks.reports.figures import median, spread
from benchmarks.reports.table import Report, Target
from benchmarks.servers.msx import HANDLERS, new_store, started
from benchmarks.utilisation.figures import Record, table
from benchmarks.utilisation.served import Plan, Served, check_overlap, play

BATCHES = {20.0: 16, 5.0: 16, 2.0: 4}
"""Requests of a full batch, by the milliseconds of a call."""
PYTHON = (0.2, 1.0, 2.0)
"""Milliseconds of Python before and behind a call, together."""
BODY = b"x" * 128
LEAST = {20.0: 0.97, 5.0: 0.95}
"""Least ratio to the loop."""
MOST_PYTHON = {20.0: 2.0, 5.0: 1.0}
"""The most milliseconds of Python with which that holds."""
FULL = 0.99
"""Least share of full batches, without which a ratio says nothing."""
OURS, SEQUENTIAL, PEER = "msx", "msx, overlap off", f"mosec {mosec.VERSION}, three stages"
CONFIG = """\
minWorkers: 1
maxWorkers: 1
batchSize: {}
jobQueueSize: 1000
deviceType: cpu
overlap: {}
clock: {{device: {}, python: {}}}
"""
PROGRAM = """\
import sys

sys.path.append({!r})
from mosec_clocked import serve

if __name__ == "__main__":
    serve({}, {}, {}, 1)
"""
"""mosec waits 1 ms for a batch to fill: its default of 10 would be most of a lone request's time, in each stage."""


class Setting(NamedTuple):
    device: float
    """Milliseconds of a call."""
    python: float

    @property
    def batch(self) -> int:
        return BATCHES[self.device]

    @property
    def title(self) -> str:
        return f"a call of {self.device:g} ms for {self.batch}, {self.python:g} ms of Python"


def measure(report: Report, settings: Sequence[Setting], plan: Plan, *, peer: bool) -> None:
    """Add a table for each setting, and the targets."""
    peer = peer and _peer_is_there(report)
    load = ClosedLoop(BODY, {"Content-Type": "application/octet-stream"})
    for setting in settings:
        with ExitStack() as stack:
            field = [stack.enter_context(one) for one in _entrants(setting, peer)]
            play(setting.title, field, load, plan)
        records = [one.record for one in field]
        report.tables.append(table(setting.title[0].upper() + setting.title[1:], records))
        report.targets += targets(setting, records[0])


def _peer_is_there(report: Report) -> bool:
    try:
        install("mosec", mosec.PACKAGES)
    except NotInstalled as missing:
        report.notes.append(f"No comparison: {missing}")
        return False
    return True


def targets(setting: Setting, record: Record) -> list[Target]:
    """Targets of ours: the ratio to the loop, and full batches; nothing where a setting is only reported."""
    if setting.python > MOST_PYTHON.get(setting.device, 0.0):
        return []
    what, least, ratios = f"{record.name}: of the loop, {setting.title}", LEAST[setting.device], record.ratios
    measured = f"{median(ratios):.3f} ({spread(ratios)})"
    return [
        Target(what, measured, f"≥ {least:g}", median(ratios) >= least),
        Target(
            f"{record.name}: full batches, {setting.title}", f"{record.full:.1%}", f"≥ {FULL:.0%}", record.full >= FULL
        ),
    ]


def _entrants(setting: Setting, peer: bool) -> list[AbstractContextManager[Served]]:
    own = [_ours(setting, name, overlap=name == OURS) for name in (OURS, SEQUENTIAL)]
    return [*own, *([_peer(setting)] if peer else [])]


@contextmanager
def _ours(setting: Setting, name: str, *, overlap: bool) -> Iterator[Served]:
    config = CONFIG.format(setting.batch, str(overlap).lower(), setting.device, setting.python)
    with (
        new_store("clocked", config, "device_clock", "measured_calls") as store,
        started(store, "clocked", tokens=False) as server,
    ):
        check_overlap(server, "clocked", wanted=overlap)
        yield _served(setting, Contestant(name, server.address, "/predictions/clocked", server.process.pid))


@contextmanager
def _peer(setting: Setting) -> Iterator[Served]:
    program = PROGRAM.format(str(HANDLERS), setting.device, setting.python, setting.batch)
    with mosec.serve(program) as (address, pid):
        yield _served(setting, Contestant(PEER, address, mosec.PATH, pid))


def _served(setting: Setting, contestant: Contestant) -> Served:
    return Served(Record(contestant.name, setting.batch), contestant, partial(_figures, contestant))


def _figures(contestant: Contestant) -> dict[str, Any]:
    reply = httpx.post(contestant.address.url + contestant.path, content=FIGURES, timeout=60)
    if reply.status_code != 200 or not reply.content.startswith(FIGURES):
        raise click.ClickException(f"{contestant.name} answers {reply.status_code}, {reply.text[:200]}: no figures")
    figures: dict[str, Any] = json.loads(reply.content.removeprefix(FIGURES))
    return figures
