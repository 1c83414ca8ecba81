"""Parts of a Ray cluster are killed under an open stream of the example Llama, whose ranks are on two nodes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.cluster import RayCluster, run_cluster
from tests.e2e.groups import ranks
from tests.e2e.llama import pack_llama
from tests.e2e.server import RunningServer, client_of, new_store, run_server, wait_until
from tests.long.test_cluster import PROMPT, config
from tests.processes import alive, children_of

pytest.importorskip("ray")

pytestmark = [pytest.mark.long, pytest.mark.mindspore, pytest.mark.e2e, pytest.mark.timeout(600)]

LENGTH = 200
"""Tokens: seconds."""
BACK = 120.0
"""Seconds that the group has to serve again."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayCluster]:
    with run_cluster() as cluster:
        yield cluster


@contextmanager
def llama(folder: Path, nodes: RayCluster, kind: str = "tp") -> Iterator[RunningServer]:
    pack_llama(new_store(folder), "llama", config(kind, nodes=2))
    with run_server(folder, "--models", "llama.mar", "--cluster-address", nodes.address) as server:
        server.wait_ready(200)
        yield server


@contextmanager
def stream(server: RunningServer, length: int = LENGTH) -> Iterator[Iterator[str]]:
    """The texts of its pieces; httpx.RemoteProtocolError or an error event ends it early."""
    body = {"model": "llama", "prompt": PROMPT, "max_tokens": length, "temperature": 0, "stream": True}
    with (
        client_of(server.info["inference"]) as client,
        client.stream("POST", "/v1/completions", json={**body, "ignore_eos": True}, timeout=60) as reply,
    ):
        assert reply.status_code == 200, reply.read()
        yield (piece for line in reply.iter_lines() if line.startswith("data: {") for piece in texts(line))


def texts(line: str) -> list[str]:
    event = json.loads(line.removeprefix("data: "))
    if "error" in event:
        raise StreamBrokenError(str(event["error"]))
    return [choice["text"] for choice in event["choices"]]


class StreamBrokenError(Exception):
    """The client was told."""


def whole(server: RunningServer) -> str:
    with stream(server) as pieces:
        return "".join(pieces)


def broken(server: RunningServer, kill: Callable[[], None]) -> float:
    """Seconds until the client was told."""
    with stream(server) as pieces:
        next(pieces)
        started = time.monotonic()
        kill()
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError, StreamBrokenError)) as told:
            list(pieces)
        seconds = time.monotonic() - started
    print(f"told after {seconds:.2f} s: {told.value}")
    return seconds


def goes_on(server: RunningServer, kill: Callable[[], None], text: str) -> None:
    with stream(server) as pieces:
        read = [next(pieces)]
        kill()
        read += pieces
    assert "".join(read) == text


def back(server: RunningServer, text: str) -> None:
    started = time.monotonic()
    wait_until(lambda: served(server) == text, "the group serves the same text", server.tail, BACK)
    print(f"back after {time.monotonic() - started:.1f} s")


def served(server: RunningServer) -> str:
    try:
        return whole(server)
    except (AssertionError, httpx.HTTPError, StreamBrokenError):
        return ""


def pids(server: RunningServer) -> list[int]:
    return [one["pid"] for one in ranks(server, "llama") if "pid" in one]


def driver(server: RunningServer) -> psutil.Process:
    (found,) = children_of(server.process.pid, "msx_ray.driver")
    return found


def test_under_an_open_stream(nodes: RayCluster, tmp_path: Path) -> None:
    """One server, because each start compiles graphs."""
    with llama(tmp_path, nodes) as server:
        text = whole(server)
        for rank in (0, 1):
            assert broken(server, partial(os.kill, pids(server)[rank], signal.SIGKILL)) < 1
            back(server, text)
        assert broken(server, nodes.agents[1].kill) < 1
        back(server, text)
        old = pids(server)
        goes_on(server, driver(server).kill, text)
        assert pids(server) == old
        connects(server)
        goes_on(server, lambda: nodes.kill(1), text)  # a call that runs may end
        wait_until(lambda: pids_or_none(server) != old, "the group leaves the node", server.tail, 60)
        nodes.add_node()
        back(server, text)
        killed = pids(server)
        assert broken(server, server.kill) < 1
        wait_until(lambda: not alive(killed), "its ranks have ended")
    nodes.assert_empty()


def connects(server: RunningServer) -> None:
    def again() -> bool:
        return "connected with the cluster" in server.log.read_text().split("ended with code -9")[-1]

    wait_until(again, "a new driver", server.tail)


def pids_or_none(server: RunningServer) -> list[int]:
    try:
        return pids(server)
    except (AssertionError, KeyError, IndexError):
        return []


def test_without_the_head(nodes: RayCluster, tmp_path: Path) -> None:
    """Streams go on and new ones are served; nothing is left when the server ends."""
    with llama(tmp_path, nodes, "pp") as server:
        text = whole(server)
        old = pids(server)
        assert broken(server, lambda: os.kill(old[1], signal.SIGKILL)) < 1
        back(server, text)
        old = pids(server)
        goes_on(server, lambda: nodes.kill(0, "gcs_server"), text)
        reason = f"Ray's head at {nodes.address} does not answer: nothing can be placed until it is back."
        wait_until(lambda: server.management.get("/cluster").json()["problem"] == reason, "it says so", server.tail)
        assert whole(server) == text
        assert pids(server) == old
    wait_until(lambda: not nodes.agents and not nodes.ranks, "nothing runs on the nodes", limit=30)
