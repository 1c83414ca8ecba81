"""A real Ray cluster of several nodes on this machine, and what of MSX runs in it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.server import wait_until
from tests.processes import command_of, environment_of, is_alive, ports_of

MARK = "MSX_TEST_CLUSTER"
"""In the environment of all that runs in the cluster."""

DEFAULT_FOLDER = "/tmp/ray"
"""Here Ray writes which cluster is the latest one, whatever folder that has; without it the head does not start."""
NODE = {"resources": {"NPU": 2}}
QUIET = {
    "RAY_BACKEND_LOG_LEVEL": "error",
    "RAY_enable_worker_prestart": "0",
    "RAY_gcs_server_port_wait_time_s": "120",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
}


class RayCluster:
    """Its nodes have the addresses 127.0.0.2 (the head), 127.0.0.3, …: instead of 127.0.0.1 Ray takes another one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        """Short, because it goes into the names of sockets."""
        env = {**os.environ, **QUIET, MARK: str(folder), "MSX_NODE_CACHE": str(folder / "node")}
        env["MSX_NODE_SHARED"] = "false"  # as on other machines, archives are fetched
        command = [sys.executable, "-m", "tests.e2e.ray_nodes"]
        self._log = (folder / "log").open("w")
        self._leader = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=env
        )
        self.nodes: list[dict[str, Any]] = []
        self._ports: set[int] = set()
        """Ports that agents have listened on, as far as somebody has looked."""

    def add_head(self, port: int = 0) -> None:
        """`port`: 0 for any."""
        given = {"gcs_server_port": port} if port else {}
        self.add_node(temp_dir=str(self._folder / "ray"), include_dashboard=False, **given)

    @property
    def address(self) -> str:
        return str(self.nodes[0]["address"])

    def add_node(self, **options: Any) -> None:
        address = f"127.0.0.{len(self.nodes) + 2}"
        self.nodes.append(self._ask({"node": {"node_ip_address": address, **NODE, **options}}))

    @contextmanager
    def pretended(self, versions: dict[str, str]) -> Iterator[None]:
        """The cluster tells other versions of Ray or Python (`ray_version`, `python_version`) than its own."""
        own = self._ask({"versions": versions})
        try:
            yield
        finally:
            self._ask({"versions": own})

    def left(self) -> list[str]:
        """The names of placement groups and actors."""
        names: list[str] = self._ask({"left": True})
        return names

    def kill(self, node: int, kind: str = "raylet") -> None:
        """SIGKILL; `gcs_server` is the head's."""
        for pid in self.nodes[node]["pids"][kind]:
            os.kill(pid, signal.SIGKILL)

    def kill_all(self) -> None:
        """Ray's processes, not those that agents have started."""
        for node in self.nodes:
            for pid in chain.from_iterable(node["pids"].values()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def running(self, words: str) -> list[psutil.Process]:
        """The processes in the cluster with these words in their command, agents and ranks also where Ray has ended."""
        return [one for one in psutil.process_iter() if self._owns(one) and words in command_of(one) and is_alive(one)]

    @property
    def contents(self) -> list[str]:
        """The contents that the nodes have fetched: they have one cache."""
        return [path.name for path in (self._folder / "node" / "contents").glob("archive-*")]

    @property
    def agents(self) -> list[psutil.Process]:
        found = self.running("msx_ray.agent")
        self._ports.update(*map(ports_of, found))
        return found

    @property
    def holders(self) -> list[psutil.Process]:
        return self.running("ray::Holder")

    @property
    def ranks(self) -> list[psutil.Process]:
        return self.running("msx_backend")

    def assert_empty(self, limit: float = 30.0) -> None:
        """No reservation, actor, holder, agent, rank, port of an agent or folder of MSX."""
        wait_until(lambda: not self.agents and not self.ranks, "agents have ended", lambda: str(self.agents), limit)
        wait_until(lambda: not self.left(), "the cluster is free", lambda: str(self.left()), limit)
        wait_until(lambda: not self.holders, "holders have ended", lambda: str(self.holders), limit)
        taken = set[int]().union(*map(ports_of, self.running("")))  # another test may have got one
        assert not self._ports & taken, f"ports of agents: {self._ports & taken}"
        run = self._folder / "node" / "run"
        wait_until(lambda: not run.exists() or not os.listdir(run), "folders of ranks are removed", limit=limit)

    def close(self) -> None:
        self._leader.communicate(timeout=60)
        self._log.close()
        for process in self.running(""):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _owns(self, process: psutil.Process) -> bool:
        return environment_of(process).get(MARK) == str(self._folder)

    def _ask(self, order: dict[str, Any]) -> Any:
        assert self._leader.stdin is not None
        assert self._leader.stdout is not None
        self._leader.stdin.write(json.dumps(order) + "\n")
        self._leader.stdin.flush()
        line = self._leader.stdout.readline()
        assert line, Path(self._log.name).read_text()[-4000:]
        return json.loads(line)


@contextmanager
def run_cluster(nodes: int = 2, port: int = 0) -> Iterator[RayCluster]:
    cluster = RayCluster(Path(tempfile.mkdtemp(prefix="msx-ray-")))
    try:
        cluster.add_head(port)
        for _ in range(nodes - 1):
            cluster.add_node()
        yield cluster
    finally:
        cluster.close()
