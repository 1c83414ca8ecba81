"""`scripts/soak --link`, as root: the link between two machines dies in the middle of streams, and comes back."""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from pathlib import Path

import click
import httpx

from tests.e2e.groups import ask, header
from tests.e2e.machines import ADDRESS, Machines, Node, linked_cluster
from tests.e2e.server import RunningServer, client_of, new_store, pack_service, run_server, wait_until
from tests.e2e.test_cluster import APART

TOLD_LIMIT, BACK_LIMIT = 60.0, 180.0


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
        machines.cut()
        with contextlib.suppress(httpx.RemoteProtocolError):
            list(pieces)
        told = time.monotonic() - started
    machines.mend()
    started = time.monotonic()
    wait_until(lambda: serves(server, node), "the group serves again", server.tail, limit=BACK_LIMIT)
    return told, time.monotonic() - started


def serves(server: RunningServer, node: Node) -> bool:
    node.keep()
    return ask(server, "apart") == (200, "x")


def soak(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="msx-link-") as name, linked_cluster(Path(name), 2) as (machines, node):
        folder = Path(name) / "server"
        folder.mkdir()
        pack_service("parallel_faults", new_store(folder), model="apart", config=APART)
        with run_server(folder, "--models", "apart.mar", "--cluster-address", ADDRESS, ready=False) as server:
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
@click.option("--rounds", default=5, type=click.IntRange(1), help="How often the link dies.")
def main(rounds: int) -> None:
    soak(rounds)


if __name__ == "__main__":
    main()
