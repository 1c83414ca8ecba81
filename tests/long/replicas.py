"""A model with a replica on each of two nodes: one is lost, the other goes on, a third takes the place of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.groups import ask
from tests.e2e.server import RunningServer, new_store, pack_service, wait_until

MODEL = "pair"
LIMIT = 180.0
"""Seconds until a replica must be there."""
CONFIG = "minWorkers: 2\nmaxWorkers: 2\nresponseTimeout: 120\n"
"""Longer than anything here: what ends a request is the loss of its replica."""


def pack_pair(folder: Path) -> str:
    return pack_service("parallel_faults", new_store(folder), model=MODEL, config=CONFIG).name


def running(server: RunningServer) -> int:
    return int(server.metric("msx_requests_running"))


def ready(server: RunningServer) -> set[int]:
    """The processes of replicas that serve."""
    return {worker["pid"] for worker in described(server) if worker["status"] == "READY"}


def both_ready(server: RunningServer, keep: Callable[[], object] = lambda: None) -> set[int]:
    """The same, when there are two; `keep` is called meanwhile."""

    def found() -> set[int]:
        keep()
        return pids if len(pids := ready(server)) == 2 else set()

    pids: set[int] = wait_until(found, "two replicas serve", lambda: str(described(server)), LIMIT)
    return pids


def described(server: RunningServer) -> list[dict[str, Any]]:
    return list(server.describe(MODEL)["workers"])


@contextmanager
def two_requests(server: RunningServer, gates: Path) -> Iterator[set[Future[tuple[int, str]]]]:
    """One that runs on each replica until the file `1` is in the folder `gates`."""
    gates.mkdir()
    with ThreadPoolExecutor(2) as threads:
        try:
            asked = {threads.submit(ask, server, MODEL, steps=1, gates=gates) for _ in range(2)}
            wait_until(lambda: running(server) == 2, "each replica has a request", server.tail)
            yield asked
        finally:
            (gates / "1").touch()


def lose_one(server: RunningServer, gates: Path, lose: Callable[[], object]) -> str:
    """`lose` takes a replica away under its request, whose error is returned; the other one goes on."""
    with two_requests(server, gates) as asked:
        lose()
        done, going_on = wait(asked, LIMIT, FIRST_COMPLETED)
        ((status, reason),) = (one.result() for one in done)
        assert status == 500, reason
        (gates / "1").touch()
        assert [one.result() for one in going_on] == [(200, "1\n")]
        for _ in range(20):
            assert ask(server, MODEL) == (200, "x")
    return reason


def both_serve(server: RunningServer, gates: Path) -> None:
    with two_requests(server, gates) as asked:
        (gates / "1").touch()
        assert [one.result() for one in asked] == [(200, "1\n")] * 2
