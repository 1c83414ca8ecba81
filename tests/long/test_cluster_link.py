"""The link between two machines of a Ray cluster dies: what is sent is lost, without an error, a FIN or an RST."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.machines import ADDRESS, Machines, Node, linked_cluster
from tests.e2e.server import run_server, wait_until
from tests.long.replicas import LIMIT, both_ready, both_serve, lose_one, pack_pair, ready
from tests.processes import command_of, environment_of, is_alive

pytest.importorskip("ray")

pytestmark = [
    pytest.mark.long,
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="root makes network namespaces"),
]


@pytest.fixture
def machines_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="msx-link-") as name:
        yield Path(name)


@pytest.fixture
def linked(machines_folder: Path) -> Iterator[tuple[Machines, Node]]:
    """An NPU on each machine: a replica of two is on each."""
    with linked_cluster(machines_folder, 1) as found:
        yield found


def of_msx(folder: Path) -> list[psutil.Process]:
    """The agents and ranks on the machines, whose caches are in the folder."""
    return [one for one in psutil.process_iter() if _is_of_msx(one, folder)]


def _is_of_msx(process: psutil.Process, folder: Path) -> bool:
    return environment_of(process).get("MSX_NODE_CACHE", "").startswith(str(folder)) and "-m msx_" in command_of(
        process
    )


def test_a_dead_link(linked: tuple[Machines, Node], machines_folder: Path, tmp_path: Path) -> None:
    """The request there is told when nothing was acknowledged for 15 s, and the replica here goes on. There the agent
    ends what it has, although nobody can tell it to. When the link is back another replica takes the place."""
    machines, node = linked
    with run_server(tmp_path, "--models", pack_pair(tmp_path), "--cluster-address", ADDRESS, ready=False) as server:
        old, before = both_ready(server, node.keep), of_msx(machines_folder)
        reason = lose_one(server, tmp_path / "lost", machines.cut)
        assert "has not answered for 15 s" in reason
        (stays,) = ready(server)
        (lost,) = old - {stays}
        wait_until(lambda: not is_alive(lost), "the rank there has ended", limit=LIMIT)
        wait_until(lambda: len(of_msx(machines_folder)) == len(before) // 2, "its agent has ended", limit=LIMIT)
        machines.mend()
        assert stays in both_ready(server, node.keep)
        both_serve(server, tmp_path / "both")
    wait_until(lambda: not of_msx(machines_folder), "nothing of the server is left on the machines", limit=LIMIT)
    for machine in "ab":
        run = machines_folder / machine / "node" / "run"
        assert not run.exists() or os.listdir(run) == []
