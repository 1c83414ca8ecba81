"""Upgrades and crashes under load, many in a row; the figures of docs/upgrade.md and docs/crashes.md. How long clients
wait is printed: a busy machine makes it longer.

`MSX_TIMES=50 pytest -s tests/long/test_supervised.py`
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.e2e.test_stages import pack_stages
from tests.e2e.test_supervisor import crash, frontends
from tests.e2e.test_upgrade import upgrade
from tests.long.supervised_loads import PAUSE, few_clients, many_clients, pack_null_text

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

TIMES = int(os.environ.get("MSX_TIMES", "5"))
"""Upgrades, or kills, in a row."""
LOAD_SECONDS = 60
MODELS = {"echo": "echo", "numbers": "stream_async"}
PLAIN = "minWorkers: 1\nmaxWorkers: 1\njobQueueSize: 1000\n"
SCALED = "jobQueueSize: 1000\nminWorkers: 1\nmaxWorkers: 2\nautoscaling:\n  targetQueueTime: 20\n"
CHAIN = "stages:\n  one: {handler: stages.py:One}\n  two: {handler: stages.py:Two}\n"
LOADS_LONG = f"""
import time
from msx_sdk import Handler

class LoadsLong(Handler):
    def initialize(self, context):
        time.sleep({LOAD_SECONDS})

    def handle(self, data, context):
        return [b"x" for _ in data]
"""


@contextmanager
def served(folder: Path) -> Iterator[RunningServer]:
    for model, service in MODELS.items():
        pack_service(service, new_store(folder), model=model, config=PLAIN)
    with run_server(folder, "--models", "all", properties="supervisor=true\n", fork=False) as server:
        yield server


class Usage(NamedTuple):
    """Memory and descriptors of the supervisor, and of all of some workers; the number of processes below it."""

    supervisor_mib: int
    workers_mib: int
    supervisor_fds: int
    workers_fds: int
    processes: int

    @classmethod
    def of(cls, server: RunningServer, pids: Sequence[int]) -> Usage:
        supervisor, workers = psutil.Process(server.process.pid), [psutil.Process(pid) for pid in pids]
        sizes = sum(one.memory_info().rss for one in workers) >> 20
        opened = sum(one.num_fds() for one in workers)
        processes = len(supervisor.children(recursive=True))
        return cls(supervisor.memory_info().rss >> 20, sizes, supervisor.num_fds(), opened, processes)

    def is_flat(self, before: Usage) -> bool:
        """A MiB more of the supervisor, a few of the workers, whose handlers work, one descriptor more: no growth."""
        return all(now <= then + more for now, then, more in zip(self, before, (1, 8, 1, 1, 0), strict=True))


def upgrade_often(server: RunningServer) -> None:
    for _ in range(TIMES):
        done = upgrade(server)
        assert done.returncode == 0, done.stderr
        wait_until(lambda: len(frontends(server)) == 1, "the server before has ended", server.tail)


def settled(server: RunningServer, workers: Sequence[int]) -> Usage:
    """The frontend before has been reaped, too."""
    below = psutil.Process(server.process.pid)
    wait_until(lambda: len(below.children(recursive=True)) == 1 + len(workers), "one frontend is left", server.tail)
    return Usage.of(server, workers)


def test_upgrades_lose_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as server, few_clients(server) as (fresh, clients):
        workers = [server.worker_pids(model)[0] for model in MODELS]
        upgrade_often(server)
        before = settled(server, workers)
        upgrade_often(server)
        after = settled(server, workers)
        fresh.end()
        clients.end()
        print(f"\nnew connections: answers {fresh.answers}, {fresh.errors}, longest wait {fresh.longest:.2f} s")
        print(f"all others: {clients}\n{before}\n{after}")
        assert (fresh.errors, clients.lost) == ({}, [])
        assert after.is_flat(before)
        assert [server.worker_pids(model)[0] for model in MODELS] == workers


def test_upgrades_under_all_loads(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    pack_service("echo", store, model="scaled", config=SCALED)
    pack_stages(store, "chain", CHAIN)
    pack_null_text(tmp_path, store)
    lasting = [*MODELS, "null_text", "chain"]
    with served(tmp_path) as server, few_clients(server) as (fresh, few), many_clients(server) as kinds:
        workers = [server.worker_pids(model) for model in lasting]
        scaled = set(server.worker_pids("scaled"))
        upgrade_often(server)
        for made in (few, *kinds.values()):
            made.end()
        fresh.end()
        print(f"\nnew connections: answers {fresh.answers}, {fresh.errors}, longest wait {fresh.longest:.2f} s")
        for name, made in {"few without a pause": few, **kinds}.items():
            print(f"{name}: {made}", *made.lost[:3])
        assert [made.lost for made in (few, *kinds.values())] == [[]] * 5
        assert fresh.errors == {}
        assert [server.worker_pids(model) for model in lasting] == workers
        assert scaled & set(server.worker_pids("scaled"))


def test_crashes_load_nothing(tmp_path: Path) -> None:
    """Only requests that run are told: one of each client at each crash, by a connection that breaks; and of gRPC's two
    clients another one, which their channel gives to that connection before it knows."""
    (tmp_path / "loads_long.py").write_text(LOADS_LONG)
    store = new_store(tmp_path)
    pack_service(str(tmp_path / "loads_long"), store, model="echo", config=PLAIN)
    pack_service("stream_async", store, model="numbers", config=PLAIN)
    with run_server(tmp_path, "--models", "all", properties="supervisor=true\n", fork=False) as server:
        workers, times = [server.worker_pids(model)[0] for model in MODELS], list[float]()
        before = Usage.of(server, workers)
        with few_clients(server, PAUSE) as (fresh, clients):
            for _ in range(TIMES):
                time.sleep(10.5)  # a crash loop backs off: it is forgotten after 10 s
                began = time.monotonic()
                crash(server)
                times.append(time.monotonic() - began)
            clients.end()
            fresh.end()
        after = Usage.of(server, workers)
        print(f"\nanswered again after {sorted(times)[TIMES // 2]:.2f} s, at most {max(times):.2f} s")
        print(f"new connections: answers {fresh.answers}, {fresh.errors}, longest wait {fresh.longest:.2f} s")
        print(f"all others: {clients}\n{before}\n{after}")
        assert [server.worker_pids(model)[0] for model in MODELS] == workers
        assert sorted(times)[TIMES // 2] < LOAD_SECONDS / 10
        assert "ConnectionRefusedError" not in fresh.errors
        assert sum(fresh.errors.values()) <= TIMES
        assert not [one for one in clients.lost if isinstance(one, (httpx.ConnectError, AssertionError))]
        assert len(clients.lost) <= 16 * TIMES
        assert after.is_flat(before)
