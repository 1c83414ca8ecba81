"""Replicas of a real server on the nodes of a real Ray cluster: strangers at its port for agents, a killed agent."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from msx_ray.agent_messages import HELLO, KEY_SIZE, Hello
from msx_ray.tls import client_context
from tests.e2e.cluster import RayCluster, run_cluster
from tests.e2e.groups import ask
from tests.e2e.server import RunningServer, pack_service, run_server, wait_until
from tests.long.replicas import MODEL, both_ready, both_serve, lose_one, pack_pair
from tests.processes import is_alive, ports_of

pytest.importorskip("ray")

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(600)]

STRANGER = "127.0.0.9"
REFUSED = "a connection to a port for agents was refused: it does not have the key"


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayCluster]:
    """Two NPUs on each of two nodes; a replica has one."""
    with run_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(nodes: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("cluster")
    with run_server(folder, "--models", pack_pair(folder), "--cluster-address", nodes.address) as running:
        yield running
    nodes.assert_empty()


def test_a_killed_agent(server: RunningServer, nodes: RayCluster, tmp_path: Path) -> None:
    """Its request is told, the other replica goes on, and another one takes its place."""
    old = both_ready(server)
    reason = lose_one(server, tmp_path / "lost", nodes.agents[0].kill)
    assert f"the agent on node {socket.gethostname()} has ended" in reason
    (stays,) = old & both_ready(server)
    both_serve(server, tmp_path / "both")
    (lost,) = old - {stays}
    assert not is_alive(lost)
    assert len(nodes.agents) == len(nodes.ranks) == 2


class Strangers:
    """They come to each port that the server opens: with a wrong key, and as a crowd that says nothing."""

    def __init__(self, server: RunningServer) -> None:
        self._server = psutil.Process(server.process.pid)
        self.ports = self._listening()
        self._over = threading.Event()

    def _listening(self) -> set[int]:
        return ports_of(self._server)

    @contextmanager
    def about(self) -> Iterator[None]:
        with ThreadPoolExecutor() as threads:
            watching = threads.submit(self._watch, threads)
            try:
                yield
            finally:
                self._over.set()
                for visit in watching.result():
                    visit.result()

    def _watch(self, threads: ThreadPoolExecutor) -> list[Future[None]]:
        visits = []
        while not self._over.wait(0.01):
            new = self._listening() - self.ports
            self.ports |= new
            visits += [threads.submit(come, port) for port in new]
        return visits


def come(port: int) -> None:
    """Until it is closed, or has been knocked at often enough."""
    command = [sys.executable, "-m", "tests.ray.crowd", str(port), "500", "100", STRANGER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as crowd:
        for _ in range(1000):
            if not knocked(port):
                break
        crowd.communicate(timeout=30)


def knocked(port: int) -> bool:
    """With a wrong key; returns whether the port is open."""
    hello = msgspec.json.encode(Hello("0" * 2 * KEY_SIZE, "agent")).ljust(HELLO)
    try:
        with (
            socket.create_connection(("127.0.0.1", port), 10, (STRANGER, 0)) as sock,
            client_context().wrap_socket(sock) as tls,
        ):
            tls.sendall(hello)
            assert tls.recv(1) == b"", "nobody is answered"
    except ConnectionRefusedError:
        return False
    except OSError:
        return True  # closed, with others of the address that has most
    return True


def test_strangers_at_the_port_for_agents(server: RunningServer, nodes: RayCluster, tmp_path: Path) -> None:
    """Models are placed and served all the same, and what served goes on."""
    names = [f"new{number}" for number in range(2)]
    strangers = Strangers(server)
    before = len(strangers.ports)
    with strangers.about():
        for name in names:
            pack_service("echo", server.store, model=name)
            reply = server.register(server.store / f"{name}.mar")
            assert reply.status_code == 200, reply.text
            assert ask(server, name) == ask(server, MODEL) == (200, "x")
    told = server.log.read_text().count(f"{REFUSED} ({STRANGER})")
    assert 0 < told <= len(strangers.ports) - before, "a line for each port"
    for name in names:
        assert server.management.delete(f"/models/{name}").status_code == 200
    wait_until(lambda: len(nodes.agents) == 2, "their agents have ended", lambda: str(nodes.agents))
    both_serve(server, tmp_path / "both")
