"""Groups on the nodes of a real Ray cluster, whose server is upgraded, or crashes: their agents belong to the frontend,
so that they start anew, and nothing of those before is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.cluster import RayCluster, run_cluster
from tests.e2e.groups import ask
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, start_server, wait_until
from tests.e2e.test_cluster import APART, killed_while_serving, open_stream, pids
from tests.e2e.test_supervisor import frontend, frontends
from tests.e2e.test_upgrade import SUPERVISED, upgrade
from tests.processes import alive

pytest.importorskip("ray")

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayCluster]:
    with run_cluster() as cluster:
        yield cluster
        cluster.assert_empty()


@contextmanager
def supervised(folder: Path, nodes: RayCluster) -> Iterator[RunningServer]:
    pack_service("parallel_faults", new_store(folder), model="apart", config=APART)
    flags = ("--models", "apart.mar", "--cluster-address", nodes.address)
    with run_server(folder, *flags, properties=SUPERVISED, fork=False) as server:
        yield server
    nodes.assert_empty()


def serves_again(server: RunningServer, old: list[int]) -> None:
    """By other ranks."""
    wait_until(lambda: ask(server, "apart") == (200, "x"), "the group serves again", server.tail)
    assert not {*pids(server)} & {*old}
    wait_until(lambda: not alive(old), "its ranks before have ended", server.tail)


def test_an_upgrade_waits_for_what_its_group_does(nodes: RayCluster, tmp_path: Path) -> None:
    gates = tmp_path / "gates"
    with supervised(tmp_path, nodes) as server:
        for _ in range(2):
            old = pids(server)
            with open_stream(server, gates) as pieces:
                assert upgrade(server).returncode == 0
                assert len(frontends(server)) == 2
                for number in (2, 3):
                    (gates / str(number)).touch()
                assert b"".join(pieces) == b"2\n3\n"
            serves_again(server, old)
            wait_until(lambda: len(frontends(server)) == 1, "the server before has ended", server.tail)
            assert len(nodes.agents) == len(nodes.ranks) == 2
            for gate in gates.iterdir():
                gate.unlink()
            gates.rmdir()


def test_a_crash_of_the_frontend(nodes: RayCluster, tmp_path: Path) -> None:
    with supervised(tmp_path, nodes) as server:
        old = pids(server)
        kill = frontend(server).kill
        told, back = killed_while_serving(server, tmp_path / "gates", kill, lambda: None)
        print(f"told after {told:.2f} s, back after {back:.1f} s")
        serves_again(server, old)
        assert len(nodes.agents) == len(nodes.ranks) == 2


def test_the_death_of_the_supervisor(nodes: RayCluster, tmp_path: Path) -> None:
    pack_service("parallel_faults", new_store(tmp_path), model="apart", config=APART)
    flags = ("--models", "apart.mar", "--cluster-address", nodes.address)
    server = start_server(tmp_path, *flags, properties=SUPERVISED, fork=False)
    server.wait_ready()
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    nodes.assert_empty()
    server.close()
