"""Where the time of a lone request goes: from the client's last byte to `inference`, and from its end to the reply."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter_ns

import click
import httpx

from benchmarks.cli.benchmark import progress
from benchmarks.handlers.marks import Marks
from benchmarks.load.client import Address
from benchmarks.peers.process import free_ports, running
from benchmarks.reports.figures import figure, median
from benchmarks.reports.table import Report, Table
from benchmarks.servers.msx import new_store
from benchmarks.utilisation.steps import STEPS, beyond_the_call, instants, micros

CALL = 5.0
"""Milliseconds of the device's call."""
WAYS = {"overlap": "true", "overlap off": "false"}
TURN = 500
"""Requests of one server before it is the other's turn."""
WARM_UP = 200
"""Requests that do not count."""
CONFIG = "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 16\ndeviceType: cpu\noverlap: {}\ncall: {}\n"
BODY = b"x" * 128
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
PATH = "/predictions/marked"


@dataclass
class Asked:
    """A server that is asked by one connection."""

    address: Address
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Nanoseconds at which each request was about to be sent, and its answer was there."""
    noted: Marks = field(default_factory=dict)
    """Marks of its processes, once it has ended."""

    def requests(self) -> list[list[int]]:
        """Return the instants of each request. Raises click.ClickException where more than one in 100 lacks a mark."""
        found = [instants(self.noted, *span) for span in self.spans]
        complete = [one for one in found if one is not None]
        if len(complete) < 0.99 * len(found):
            raise click.ClickException(f"{len(found) - len(complete)} of {len(found)} requests lack a mark.")
        return complete


def measure(report: Report, requests: int) -> None:
    """Add the table of so many requests of one connection, one after the other, with overlap and without, in turns."""
    with ExitStack() as stack:
        ways = {way: stack.enter_context(_asked(yaml)) for way, yaml in WAYS.items()}
        for count in _turns(requests):
            for one in ways.values():
                one.spans += _ask(one.address, count)
            progress(f"utilisation: {count} lone requests each")
    title = f"A lone request, µs: medians of {requests:,}, a call of {CALL:g} ms"
    report.tables.append(table({way: one.requests() for way, one in ways.items()}, title))


def _turns(requests: int) -> list[int]:
    return [min(TURN, requests - done) for done in range(0, requests, TURN)]


def table(ways: Mapping[str, Sequence[Sequence[int]]], title: str) -> Table:
    """Make a row a step, and one for all of them but the call; a column for each of `ways`: instants of requests."""
    medians = [micros(one) for one in ways.values()]
    rows = [(step.where, step.what, *map(figure, found)) for step, *found in zip(STEPS, *medians, strict=True)]
    beyond = [figure(median(map(beyond_the_call, one)) / 1000) for one in ways.values()]
    return Table(title, ("where", "step", *ways), [*rows, ("", "all but the call", *beyond)])


@contextmanager
def _asked(overlap: str) -> Iterator[Asked]:
    """A server of its own, warm."""
    with new_store("marked", CONFIG.format(overlap, CALL), "marks") as store:
        inference, management = (Address("127.0.0.1", port) for port in free_ports(2))
        file = store.parent / "marks.json"
        command, asked = _command(store, file, inference, management), Asked(inference)
        with running("msx-serve", command, store.parent, inference, "/readyz", environment=ENVIRONMENT):
            _ask(inference, WARM_UP)
            yield asked
            reply = httpx.get(f"{management.url}/models/marked?customized=true", timeout=60).json()
        asked.noted = json.loads(file.read_text()) | reply[0]["customizedMetadata"]


def _command(store: Path, marks: Path, inference: Address, management: Address) -> list[str]:
    addresses = {"inference_address": inference.url, "management_address": management.url}
    return [
        *(sys.executable, "-m", "benchmarks.utilisation.marked_server", str(marks)),
        *("--foreground", "--ts-config", str(store.parent / "config.properties"), "--model-store", str(store)),
        *("--models", "marked.mar", "--disable-token-auth"),
        *(word for name, url in addresses.items() for word in ("--set", f"{name}={url}")),
    ]


def _ask(address: Address, count: int) -> list[tuple[int, int]]:
    """Return when each request was about to be sent, and when its answer was there, in ns."""
    head = f"POST {PATH} HTTP/1.1\r\nHost: {address.host}\r\nContent-Type: application/octet-stream\r\n"
    request = f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY
    with socket.create_connection((address.host, address.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return [_ask_once(connection, request) for _ in range(count)]


def _ask_once(connection: socket.socket, request: bytes) -> tuple[int, int]:
    begun = perf_counter_ns()
    connection.sendall(request)
    reply = connection.recv(1 << 16)
    while reply and not reply.endswith(BODY):
        reply += connection.recv(1 << 16)
    ended = perf_counter_ns()
    if not reply.startswith(b"HTTP/1.1 200"):
        raise click.ClickException(f"A lone request was answered by {reply[:200]!r}.")
    return begun, ended
