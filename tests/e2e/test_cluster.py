"""A real server whose workers run on the nodes of a real Ray cluster: it serves, loses things, and leaves nothing."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.cluster import RayCluster, run_cluster
from tests.e2e.groups import ask, header, ranks
from tests.e2e.server import RunningServer, client_of, new_store, pack_service, run_server, wait_until
from tests.processes import alive, children_of

pytest.importorskip("ray")

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

APART = "parallelType: tp\nmsrun: {nproc-per-node: 1, nnodes: 2}\nrankSkewTimeout: 5\n"


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayCluster]:
    with run_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(nodes: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Serves a group of two, one rank on each node; each test leaves it READY."""
    folder = tmp_path_factory.mktemp("cluster")
    pack_service("parallel_faults", new_store(folder), model="apart", config=APART)
    with run_server(folder, "--models", "apart.mar", "--cluster-address", nodes.address) as running:
        yield running
        assert len(nodes.contents) == len(set(nodes.contents)) > 0, "the nodes have fetched the archives"
    nodes.assert_empty()


def pids(server: RunningServer) -> list[int]:
    return [one["pid"] for one in ranks(server, "apart") if "pid" in one]


@contextmanager
def open_stream(server: RunningServer, gates: Path) -> Iterator[Iterator[bytes]]:
    """A stream of the group, after its first piece; the next one does not come."""
    order = {"steps": 3, "gates": str(gates)}
    gates.mkdir()
    (gates / "1").touch()
    with (
        client_of(server.info["inference"]) as client,
        client.stream("POST", "/predictions/apart", content=b"x", headers=header(**order)) as reply,
    ):
        pieces = reply.iter_raw()
        assert next(pieces) == b"1\n"
        yield pieces


def killed_while_serving(
    server: RunningServer, gates: Path, kill: Any, replace: Any = lambda: None
) -> tuple[float, float]:
    """Kill something in the middle of a stream, and then replace it; returns the seconds until the client was told, and
    until the model served again."""
    with open_stream(server, gates) as pieces:
        started = time.monotonic()
        kill()
        replace()
        with pytest.raises(httpx.RemoteProtocolError):
            list(pieces)
        told = time.monotonic() - started
    wait_until(lambda: ask(server, "apart") == (200, "x"), "the group serves again", server.tail)
    return told, time.monotonic() - started


def test_a_killed_rank(server: RunningServer, nodes: RayCluster, tmp_path: Path) -> None:
    assert ask(server, "apart") == (200, "x")
    agents, old = nodes.agents, pids(server)
    told, back = killed_while_serving(server, tmp_path / "gates", lambda: os.kill(old[1], signal.SIGKILL))
    print(f"told after {told:.2f} s, back after {back:.1f} s")
    assert nodes.agents == agents
    assert not set(pids(server)) & set(old)


def test_a_killed_agent(server: RunningServer, nodes: RayCluster, tmp_path: Path) -> None:
    told, back = killed_while_serving(server, tmp_path / "gates", lambda: nodes.agents[1].kill())
    print(f"told after {told:.2f} s, back after {back:.1f} s")


def test_a_killed_driver(server: RunningServer, nodes: RayCluster) -> None:
    old = pids(server)
    (driver,) = children_of(server.process.pid, "msx_ray.driver")
    driver.kill()
    for _ in range(20):
        assert ask(server, "apart") == (200, "x")

    def connected_again() -> bool:
        _, ended, later = server.log.read_text().rpartition("ended with code -9")
        return bool(ended) and "connected with the cluster" in later

    wait_until(connected_again, "a new driver", server.tail)
    assert ask(server, "apart") == (200, "x")
    assert pids(server) == old


def test_a_killed_server(server: RunningServer, nodes: RayCluster, tmp_path: Path) -> None:
    """Two servers share the cluster; of the one that is killed nothing is left in Ray or on nodes."""
    others = nodes.agents, nodes.left()
    pack_service("parallel_faults", new_store(tmp_path), model="apart", config=APART)
    with run_server(tmp_path, "--models", "apart.mar", "--cluster-address", nodes.address) as second:
        assert ask(second, "apart") == (200, "x")
        assert len(nodes.agents) == 4
        killed = pids(second)
        second.kill()
        started = time.monotonic()
        wait_until(lambda: not alive(killed), "its ranks have ended")
        wait_until(lambda: nodes.agents == others[0], "its agents have ended")
        wait_until(lambda: nodes.left() == others[1], "its places are free", lambda: str(nodes.left()))
        print(f"nothing left after {time.monotonic() - started:.2f} s")
    assert ask(server, "apart") == (200, "x")


@pytest.mark.collectives
@pytest.mark.skipif(find_spec("mindspore") is None, reason="the extra `mindspore` is not installed")
def test_matmul(server: RunningServer, tmp_path: Path) -> None:
    """MindSpore's collectives between two nodes. This process does not import it: the test runs with those that share
    its cluster."""
    from tests.e2e.matmul import assert_product, pack_mindirs

    pack_mindirs(tmp_path, 2, "deviceType: cpu\nparallel: {nodes: 2}\n")
    shutil.copy(tmp_path / "store" / "matmul.mar", server.store)
    reply = server.register(server.store / "matmul.mar", synchronous="true")
    assert reply.status_code == 200, reply.text
    assert_product(server, "matmul")
    assert server.management.delete("/models/matmul").status_code == 200
