"""`scripts/soak --ray`: parts of a cluster are killed in the middle of streams, again and again."""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import click
import httpx
import psutil
import pytest

from tests.e2e.cluster import RayCluster, run_cluster
from tests.e2e.groups import ask
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.e2e.test_cluster import APART, killed_while_serving, open_stream, pids
from tests.processes import alive, children_of

CONNECTED = "connected with the cluster"
KINDS = ("rank", "agent", "raylet", "driver", "server")


class Soak:
    """`told` and `back`: by what was killed, seconds until the client was told, and until the model served again."""

    def __init__(self, cluster: RayCluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self.told: defaultdict[str, list[float]] = defaultdict(list)
        self.back: defaultdict[str, list[float]] = defaultdict(list)

    def rounds(self, server: RunningServer, kind: str, count: int) -> None:
        for number in range(count):
            wait_until(lambda: ask(server, "apart") == (200, "x"), "the group serves", server.tail)
            if kind == "driver":
                self._kill_driver(server)
            else:
                gates = self._folder / f"gates-{kind}-{number}"
                more = self._cluster.add_node if kind == "raylet" else lambda: None
                told, back = killed_while_serving(server, gates, self._kill(server, kind), more)
                self.told[kind].append(told)
                self.back[kind].append(back)

    def _kill(self, server: RunningServer, kind: str) -> Callable[[], None]:
        if kind == "rank":
            return lambda: os.kill(pids(server)[1], signal.SIGKILL)
        if kind == "agent":
            return lambda: self._cluster.agents[-1].kill()
        return lambda: self._cluster.kill(len(self._cluster.nodes) - 1)

    def _kill_driver(self, server: RunningServer) -> None:
        """No request may fail."""
        old, said = pids(server), len(server.log.read_text())
        started = time.monotonic()
        if (running := driver(server)) is not None:
            running.kill()
        for _ in range(20):
            assert ask(server, "apart") == (200, "x")
        wait_until(lambda: CONNECTED in server.log.read_text()[said:], "a new driver is connected", limit=30)
        assert pids(server) == old
        self.back["driver"].append(time.monotonic() - started)

    def server(self, number: int) -> None:
        """A second server is killed: of it nothing is left, and the first one serves."""
        folder = self._folder / f"second-{number}"
        folder.mkdir()
        pack_service("parallel_faults", new_store(folder), model="apart", config=APART)
        others = self._cluster.agents, self._cluster.left()
        with run_server(folder, "--models", "apart.mar", "--cluster-address", self._cluster.address) as second:
            wait_until(lambda: ask(second, "apart") == (200, "x"), "the second one serves", second.tail)
            killed = pids(second)
            with open_stream(second, folder / "gates") as pieces:
                started = time.monotonic()
                second.kill()
                with pytest.raises(httpx.RemoteProtocolError):
                    list(pieces)
                self.told["server"].append(time.monotonic() - started)
            wait_until(lambda: not alive(killed), "its ranks have ended")
            wait_until(lambda: self._cluster.agents == others[0], "its agents have ended")
            wait_until(lambda: self._cluster.left() == others[1], "its places are free")
            self.back["server"].append(time.monotonic() - started)


def driver(server: RunningServer) -> psutil.Process | None:
    """The process that talks to Ray, if one runs."""
    return next(iter(children_of(server.process.pid, "msx_ray.driver")), None)


@click.command()
@click.option("--rounds", default=20, type=click.IntRange(1), help="Of each kind of kill.")
@click.option("--only", type=click.Choice(KINDS), multiple=True, default=KINDS)
def main(rounds: int, only: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(prefix="msx-soak-") as name, run_cluster() as cluster:
        folder, soak = Path(name), Soak(cluster, Path(name))
        pack_service("parallel_faults", new_store(folder), model="apart", config=APART)
        with run_server(folder, "--models", "apart.mar", "--cluster-address", cluster.address) as server:
            for kind in only:
                for number in range(rounds) if kind == "server" else ():
                    soak.server(number)
                if kind != "server":
                    soak.rounds(server, kind, rounds)
                report(soak, kind, rounds)
        cluster.assert_empty()
        click.echo("nothing is left: no holder, agent, rank, placement group, actor, folder or port of an agent")


def report(soak: Soak, kind: str, rounds: int) -> None:
    said = [f"{kind}: {rounds} rounds"]
    for name, seconds in (("told after", soak.told[kind]), ("back after", soak.back[kind])):
        if seconds:
            middle = statistics.median(seconds)
            said.append(f"{name} {min(seconds):.2f} / {middle:.2f} / {max(seconds):.2f} s (least, median, most)")
    click.echo(", ".join(said))


if __name__ == "__main__":
    main()
