"""The entrants of an echo contest: MSX and its peers, each with one worker that returns the bytes that it gets.

Beside them a bare function behind uvicorn, which has no worker at all.

The bytes are a JSON string, because LitServe takes nothing else; only LitServe decodes them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.contests.before import BEFORE
from benchmarks.contests.contest import Contestant
from benchmarks.load.client import Connection
from benchmarks.peers import litserve, mosec, torchserve
from benchmarks.peers.venv import NotInstalled
from benchmarks.reports.table import Report
from benchmarks.servers import bare_asgi
from benchmarks.servers.msx import serve

PRODUCTS = {
    "msx": "msx",
    "mosec": f"mosec {mosec.VERSION}",
    "torchserve": f"TorchServe {torchserve.VERSION}",
    "litserve": f"LitServe {litserve.VERSION}",
    "asgi": "bare ASGI",
}
PACKAGES = {"mosec": mosec.PACKAGES, "torchserve": torchserve.PACKAGES, "litserve": litserve.PACKAGES}
JAVA = 3
"""A factor of the warm-up's length: Java compiles meanwhile."""


@dataclass(frozen=True)
class Entrant:
    product: str
    """A key of PRODUCTS."""
    setting: str
    """Its options; empty for its defaults."""
    join: Callable[[str], AbstractContextManager[Contestant]]
    """Starts it, under its name."""
    at: Callable[[Path], Entrant] | None = None
    """The same setting of another checkout, by its `msx-serve`."""

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (PRODUCTS[self.product], self.setting)))


def msx_echo(
    setting: str = "", *, batch: int = 1, tokens: bool = False, properties: str = "", program: Path | None = None
) -> Entrant:
    """`properties` are further lines of config.properties; `program` is an `msx-serve` of another checkout."""

    @contextmanager
    def join(name: str) -> Iterator[Contestant]:
        config = f"minWorkers: 1\nmaxWorkers: 1\nbatchSize: {batch}\njobQueueSize: 1000\n"
        with serve("echo", config, tokens=tokens, properties=properties, program=program) as server:
            yield Contestant(name, server.address, "/predictions/echo", server.process.pid)

    def at(other: Path) -> Entrant:
        return msx_echo(
            ", ".join(filter(None, (setting, BEFORE))), batch=batch, tokens=tokens, properties=properties, program=other
        )

    return Entrant("msx", setting, join, at)


def mosec_echo(setting: str = "", *flags: str, batch: int = 1, wait: int = 10) -> Entrant:
    """`wait` is in ms."""

    @contextmanager
    def join(name: str) -> Iterator[Contestant]:
        with mosec.serve_echo(*flags, batch=batch, wait=wait) as (address, pid):
            yield Contestant(name, address, mosec.PATH, pid)

    return Entrant("mosec", setting, join)


def torchserve_echo(setting: str = "", *, batch: int = 1, delay: int = 100) -> Entrant:
    """`delay` is in ms."""

    @contextmanager
    def join(name: str) -> Iterator[Contestant]:
        with torchserve.serve_echo(batch, delay) as peer:
            yield Contestant(name, peer.http, f"/predictions/{torchserve.MODEL}", peer.pid, warm_ups=JAVA)

    return Entrant("torchserve", setting, join)


def litserve_echo(
    setting: str = "", api: dict[str, Any] | None = None, server: dict[str, Any] | None = None
) -> Entrant:
    """Arguments of LitAPI and LitServer. With batches it polls while it has nothing to do, a fifth of a core's time."""

    @contextmanager
    def join(name: str) -> Iterator[Contestant]:
        with litserve.serve_echo(api, server) as (address, pid):
            contestant = Contestant(name, address, litserve.PATH, pid, restless=bool(api))
            try:
                yield contestant
            finally:
                contestant.wake()

    return Entrant("litserve", setting, join)


def asgi_echo() -> Entrant:
    """A function of ASGI that answers where it reads: what uvicorn costs without a model server."""

    @contextmanager
    def join(name: str) -> Iterator[Contestant]:
        with bare_asgi.serve_echo() as (address, pid):
            yield Contestant(name, address, bare_asgi.PATH, pid)

    return Entrant("asgi", "", join)


def versions(products: Iterable[str]) -> str:
    """The versions of the peers' packages."""
    packages = {name: number for product in products for name, number in PACKAGES.get(product, {}).items()}
    made = ", ".join([f"{name} {number}" for name, number in packages.items()])
    return f"Peers: {made}; {torchserve.java()}" if "torchserve" in packages else f"Peers: {made or 'none'}"


def enter(stack: ExitStack, entrants: Iterable[Entrant], body: int, report: Report) -> list[Contestant]:
    """Start contestants that can be had here; a note says why others cannot. Raises where one does not echo `body`."""
    contestants = []
    for entrant in entrants:
        try:
            contestants.append(stack.enter_context(entrant.join(entrant.name)))
        except NotInstalled as missing:
            note = f"No comparison: {missing}"
            report.notes += [note] if note not in report.notes else []
            continue
        asyncio.run(_check(contestants[-1], json.dumps("x" * (body - 2)).encode()))
    return contestants


async def _check(contestant: Contestant, body: bytes) -> None:
    connection = await Connection.open(contestant.address)
    answer = await connection.post(contestant.path, body)
    connection.leave()
    if answer != (200, body):
        raise click.ClickException(f"{contestant.name} does not echo: {answer.status} {answer.body[:200]!r}")
