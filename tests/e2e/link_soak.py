"""`scripts/soak --link`, as root: the link between two machines goes down in the middle of streams, and up again.

Each machine is a network namespace with a folder of its own for Ray, and a pair of veth devices joins them: the head
and the server are on one, a node on the other.
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import httpx

from tests.e2e.cluster import QUIET
from tests.e2e.groups import ask, header
from tests.e2e.server import RunningServer, client_of, new_store, pack_service, run_server, wait_until
from tests.e2e.test_cluster import APART

HERE, THERE = "10.77.0.1", "10.77.0.2"
INSIDE = "MSX_INSIDE"
"""In the environment of this command where it runs on the first machine: the names of both."""
RAY = Path("/tmp/ray")
TOLD_LIMIT, BACK_LIMIT = 60.0, 180.0


class Machines:
    """The names of two network namespaces; `link` changes the far end of what joins them."""

    def __init__(self, names: str) -> None:
        self.here, self.there = names.split()

    def make(self) -> None:
        for name in (self.here, self.there):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "va", "netns", self.here, "type", "veth", "peer", "name", "vb", "netns", self.there)
        for name, device, address in ((self.here, "va", HERE), (self.there, "vb", THERE)):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", device)
            ip("-n", name, "link", "set", device, "up")

    def remove(self) -> None:
        for name in (self.here, self.there):
            ip("netns", "del", name)

    def link(self, state: str) -> None:
        ip("-n", self.there, "link", "set", "vb", state)

    @staticmethod
    def inside(name: str, own: Path, command: list[str]) -> list[str]:
        """The command on one of the machines, with `own` as the folder that Ray writes into."""
        own.mkdir(parents=True, exist_ok=True)
        RAY.mkdir(exist_ok=True)
        mounted = ["bash", "-c", 'mount --bind "$0" "$1" && exec "${@:2}"', str(own), str(RAY), *command]
        return ["ip", "netns", "exec", name, "unshare", "--mount", *mounted]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


class Node:
    """Ray's processes on the second machine, which end when the head has given them up: they are started again."""

    def __init__(self, machines: Machines, folder: Path) -> None:
        self._machines, self._folder = machines, folder
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        if self._process is None or self._process.poll() is not None:
            command = ray(f"--address={HERE}:6379", THERE)
            self._process = run(self._machines.inside(self._machines.there, self._folder, command), self._folder)

    def close(self) -> None:
        if self._process is not None:
            end(self._process)


def ray(role: str, address: str) -> list[str]:
    command = [str(Path(sys.executable).with_name("ray")), "start", role, f"--node-ip-address={address}", "--block"]
    return [*command, '--resources={"NPU": 2}', "--num-cpus=4", "--object-store-memory=100000000"]


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
def cluster(machines: Machines, folder: Path) -> Iterator[Node]:
    head = run([*ray("--head", HERE), "--port=6379", "--include-dashboard=false"], folder / "a")
    node = Node(machines, folder / "b")
    try:
        wait_until(answers, "Ray's head answers", limit=60)
        node.keep()
        yield node
    finally:
        node.close()
        end(head)


def one_round(server: RunningServer, machines: Machines, node: Node, gates: Path) -> tuple[float, float]:
    """Seconds from the link's end until the client was told, and from its return until the model served again."""
    gates.mkdir()
    (gates / "1").touch()
    order = header(steps=3, gates=str(gates))
    with (
        client_of(server.info["inference"], None) as client,
        client.stream("POST", "/predictions/apart", content=b"x", headers=order, timeout=TOLD_LIMIT) as reply,
    ):
        pieces = reply.iter_raw()
        assert next(pieces) == b"1\n"
        started = time.monotonic()
        machines.link("down")
        with contextlib.suppress(httpx.RemoteProtocolError):
            list(pieces)
        told = time.monotonic() - started
    machines.link("up")
    started = time.monotonic()
    wait_until(lambda: serves(server, node), "the group serves again", server.tail, limit=BACK_LIMIT)
    return told, time.monotonic() - started


def serves(server: RunningServer, node: Node) -> bool:
    node.keep()
    return ask(server, "apart") == (200, "x")


def soak(machines: Machines, rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="msx-link-") as name, cluster(machines, Path(name)) as node:
        folder = Path(name) / "server"
        folder.mkdir()
        pack_service("parallel_faults", new_store(folder), model="apart", config=APART)
        with run_server(folder, "--models", "apart.mar", "--cluster-address", f"{HERE}:6379", ready=False) as server:
            wait_until(lambda: serves(server, node), "the group serves", server.tail, limit=BACK_LIMIT)
            figures = [one_round(server, machines, node, folder / f"gates-{n}") for n in range(rounds)]
            report(figures)


def report(figures: list[tuple[float, float]]) -> None:
    said = [f"link: {len(figures)} rounds"]
    for name, seconds in zip(("told after", "back after"), zip(*figures, strict=True), strict=True):
        middle = statistics.median(seconds)
        said.append(f"{name} {min(seconds):.2f} / {middle:.2f} / {max(seconds):.2f} s (least, median, most)")
    click.echo(", ".join(said))


@click.command()
@click.option("--rounds", default=5, type=click.IntRange(1), help="How often the link goes down.")
def main(rounds: int) -> None:
    if names := os.environ.get(INSIDE):
        soak(Machines(names), rounds)
        return
    machines = Machines(f"msxa{os.getpid()} msxb{os.getpid()}")
    machines.make()
    try:
        with tempfile.TemporaryDirectory(prefix="msx-head-") as own:
            command = [sys.executable, "-m", "tests.e2e.link_soak", *sys.argv[1:]]
            command = machines.inside(machines.here, Path(own), command)
            env = {**os.environ, INSIDE: f"{machines.here} {machines.there}"}
            sys.exit(subprocess.run(command, env=env).returncode)
    finally:
        machines.remove()


if __name__ == "__main__":
    main()
