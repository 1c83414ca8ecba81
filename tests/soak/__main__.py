"""The command: so many minutes of traffic, then what is left of it."""

from __future__ import annotations

import asyncio
import collections
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.e2e.test_supervisor import frontends
from tests.soak.floods import FLOODS
from tests.soak.kills import Replacements, kill_workers
from tests.soak.strangers import STRANGERS
from tests.soak.target import Fault, Target, Visit
from tests.soak.usage import Usage
from tests.soak.visitors import VISITORS

MODELS = {"echo": "echo", "numbers": "stream_async", "chunks": "large_chunks", "big": "big"}
LIMITS = """
request_head_timeout=2
request_body_grace=2
keep_alive_timeout=5
http2_ping_interval=5
http2_ping_timeout=5
max_connections=400
supervisor=true
upgrade_timeout=20
"""
"""Short ones, so that each comes to act many times."""

AT_ONCE = 24
LONGEST_VISIT = 60.0
WARM_UP = 180.0
"""Seconds in which allocators come to keep what they need: a minute of them was not enough on a busy machine."""
CALM = 60.0
"""Seconds in which all that traffic has taken must be given back."""
QUIET = 20.0
STOPS_WITHIN = 15.0


class Soak:
    """Visits of all kinds, `AT_ONCE` at a time, until `end` (`time.monotonic()`)."""

    def __init__(self, target: Target, end: float) -> None:
        self._target, self._end = target, end
        self.visits = collections.Counter[str]()
        self.broken = collections.Counter[str]()
        """Visits that lost their connection, which a kill of a worker or a limit of the server may do."""
        self.faults: list[str] = []

    async def run(self) -> None:
        await asyncio.gather(*(self._visitor() for _ in range(AT_ONCE)))

    async def _visitor(self) -> None:
        while time.monotonic() < self._end and len(self.faults) < 20:
            await self._visit(random.choice(random.choice([VISITORS, VISITORS, STRANGERS, FLOODS])))

    async def _visit(self, visit: Visit) -> None:
        name = visit.__name__
        self.visits[name] += 1
        try:
            await asyncio.wait_for(visit(self._target), LONGEST_VISIT)
        except asyncio.TimeoutError:
            self.faults.append(f"{name}: it was not over after {LONGEST_VISIT:g} s")
        except Fault as fault:
            self.faults.append(f"{name}: {fault}")
        except (OSError, EOFError):
            self.broken[name] += 1


@click.command()
@click.option("--minutes", default=10.0, type=click.FloatRange(0.1), help="Of traffic, after three minutes to warm up.")
@click.option(
    "--replacing",
    default=5.0,
    type=click.FloatRange(0),
    help="Further minutes, in which the server is upgraded and its frontend killed in turn.",
)
@click.option("--seed", default=0, help="Of the choice of visits.")
def main(minutes: float, replacing: float, seed: int) -> None:
    """Mixed traffic, slow readers, leavers, floods, killed workers, then upgrades and killed frontends; exit with 1 if
    anything is left, or was wrong."""
    random.seed(seed)
    with _served() as server:
        target = Target(server.info["inference"], server.info["grpc_inference"])
        warm = _soaked(server, target, WARM_UP)
        before = _settled(server)
        click.echo(f"before: {before}")
        soak = _soaked(server, target, minutes * 60)
        after = _settled(server)
        click.echo(f"after: {after}")
        replacements = Replacements(server)
        last = _soaked(server, target, replacing * 60, replacements)
        replaced = _settled(server)
        click.echo(f"after {dict(replacements.done)}: {replaced}")
        running = _ends_late(server)
    _report(soak)
    _report(last)
    faults = [*warm.faults, *soak.faults, *after.faults(before), *last.faults, *replacements.faults]
    faults += [*replaced.faults(before), *running]
    for fault in faults:
        click.echo(fault)
    sys.exit(bool(faults))


@contextmanager
def _served() -> Iterator[RunningServer]:
    with tempfile.TemporaryDirectory(prefix="msx-soak-") as name:
        folder = Path(name)
        for model, service in MODELS.items():
            pack_service(service, new_store(folder), model=model)
        with run_server(folder, "--models", "all", properties=LIMITS, fork=False) as server:
            yield server


def _soaked(server: RunningServer, target: Target, seconds: float, replacements: Replacements | None = None) -> Soak:
    soak = Soak(target, time.monotonic() + seconds)

    async def run() -> None:
        tasks = [asyncio.create_task(kill_workers(server, MODELS))]
        tasks += [] if replacements is None else [asyncio.create_task(replacements.run())]
        await soak.run()
        for task in tasks:
            task.cancel()
        for failed in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(failed, Exception):
                raise failed

    asyncio.run(run())
    return soak


def _settled(server: RunningServer) -> Usage:
    """Once workers serve again and connections are gone: what is the same for `QUIET` seconds."""
    wait_until(lambda: len(frontends(server)) == 1, "one frontend is left")
    server.wait_ready()
    end, last, since = time.monotonic() + CALM, Usage.of(server), time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < QUIET:
        time.sleep(0.5)
        now = Usage.of(server)
        if now[1:] != last[1:]:
            since = time.monotonic()
        last = now
    return last


def _ends_late(server: RunningServer) -> list[str]:
    """A server that is told to stop waits for jobs that run (`drain_timeout`): here there is none."""
    told = time.monotonic()
    server.terminate()
    took = time.monotonic() - told
    return [f"the server took {took:.1f} s to stop, as if a job were running"] if took > STOPS_WITHIN else []


def _report(soak: Soak) -> None:
    for name, number in sorted(soak.visits.items()):
        broken = soak.broken[name]
        click.echo(f"{name:24} {number:6}" + (f", of which {broken} lost their connection" if broken else ""))


if __name__ == "__main__":
    main()
