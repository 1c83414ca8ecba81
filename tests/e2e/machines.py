"""A Ray cluster on two machines whose link can die: each is a network namespace with a folder of its own for Ray.

A third namespace is the switch between them. When it forwards nothing, both keep their carrier and hear nothing: what
they send is lost, without an error, a FIN or an RST. The head is on one machine, a node on the other. It needs root.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.e2e.cluster import DEFAULT_FOLDER, QUIET
from tests.e2e.server import wait_until

HERE, THERE = "10.77.0.1", "10.77.0.2"
RAY = "ray"
"""The folder that Ray writes into, the same path on both machines: it goes into the names of sockets, and is short."""
ADDRESS = f"{HERE}:6379"
"""Port of Ray's head."""
_CLONE_NEWNET = 0x40000000
"""From linux/sched.h."""


class Machines:
    """The names of three network namespaces."""

    def __init__(self) -> None:
        self.here, self.there, self._switch = (f"msx{kind}{os.getpid()}" for kind in "abs")

    def make(self) -> None:
        for name in (self.here, self.there, self._switch):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", self._switch, "link", "set", "bridge", "up")
        for name, port, address in ((self.here, "pa", HERE), (self.there, "pb", THERE)):
            ip("link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", port, "netns", self._switch)
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")

    def remove(self) -> None:
        for name in (self.here, self.there, self._switch):
            ip("netns", "del", name)

    def cut(self) -> None:
        """Nothing that one sends arrives at the other."""
        ip("-n", self._switch, "link", "set", "pb", "nomaster")

    def mend(self) -> None:
        ip("-n", self._switch, "link", "set", "pb", "master", "bridge")

    def visit(self) -> AbstractContextManager[None]:
        """This thread, and what it starts, is on the first machine."""
        return visiting(self.here)

    @staticmethod
    def inside(name: str, folder: Path, command: list[str]) -> list[str]:
        """The command on one of the machines, with a folder of its own that Ray writes into."""
        own = folder / name
        own.mkdir(parents=True, exist_ok=True)
        mounted = ["bash", "-c", 'mount --bind "$0" "$1" && exec "${@:2}"', str(own), str(folder / RAY), *command]
        return ["ip", "netns", "exec", name, "unshare", "--mount", *mounted]


@contextmanager
def visiting(namespace: str) -> Iterator[None]:
    """This thread, and what it starts, is in the network namespace of this name."""
    with open("/proc/self/ns/net") as own:
        _enter(Path("/run/netns") / namespace)
        try:
            yield
        finally:
            _enter(Path(f"/proc/self/fd/{own.fileno()}"))


def _enter(namespace: Path) -> None:
    with namespace.open() as opened:
        if ctypes.CDLL(None, use_errno=True).setns(opened.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"{namespace} cannot be entered")


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


class Node:
    """Ray's processes on the second machine, which end when the head has given them up: they are started again."""

    def __init__(self, machines: Machines, folder: Path, npus: int) -> None:
        self._machines, self._folder, self._npus = machines, folder, npus
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        if self._process is None or self._process.poll() is not None:
            command = ray(f"--address={ADDRESS}", THERE, self._npus)
            self._process = run(self._machines.inside(self._machines.there, self._folder, command), self._folder / "b")

    def close(self) -> None:
        if self._process is not None:
            end(self._process)


def ray(role: str, address: str, npus: int) -> list[str]:
    command = [str(Path(sys.executable).with_name("ray")), "start", role, f"--node-ip-address={address}", "--block"]
    return [*command, f'--resources={{"NPU": {npus}}}', "--num-cpus=4", "--object-store-memory=100000000"]


def answers() -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HERE, 6379), 1):
        return True
    return False


def run(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    env = {**os.environ, **QUIET, "MSX_NODE_CACHE": str(folder / "node"), "MSX_NODE_SHARED": "false"}
    with Path(f"{folder}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=env)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(30)
    process.kill()
    process.wait()


@contextmanager
def linked_cluster(folder: Path, npus: int) -> Iterator[tuple[Machines, Node]]:
    """So many NPUs on each of two machines, with files in a folder of a short name, whose subfolders `a` and `b` are
    the machines' own. Inside it this thread is on the first one."""
    machines = Machines()
    try:
        machines.make()
        with machines.visit(), _cluster(machines, folder, npus) as node:
            yield machines, node
    finally:
        machines.remove()


@contextmanager
def _cluster(machines: Machines, folder: Path, npus: int) -> Iterator[Node]:
    (folder / RAY).mkdir()
    Path(DEFAULT_FOLDER).mkdir(exist_ok=True)
    own = ["--port=6379", "--include-dashboard=false", f"--temp-dir={folder / RAY}"]
    head = run([*ray("--head", HERE, npus), *own], folder / "a")
    node = Node(machines, folder, npus)
    try:
        wait_until(answers, "Ray's head answers", limit=60)
        node.keep()
        yield node
    finally:
        node.close()
        end(head)
