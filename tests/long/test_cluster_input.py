"""Messages on nodes and clusters that do not suit, on a real Ray cluster; models without MindSpore."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from msx_frontend import __version__
from tests.e2e.cluster import RayCluster, run_cluster
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until

pytest.importorskip("ray")

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(300)]

NODE = socket.gethostname()
AN_HOUR_AHEAD = """
import time
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + 3600
time.time_ns = lambda: _time_ns() + 3600 * 10**9
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayCluster]:
    """One node with two NPUs; each test adds one with more, of a size of its own."""
    with run_cluster(1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(nodes: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with run_server(tmp_path_factory.mktemp("cluster"), "--cluster-address", nodes.address) as running:
        yield running
    nodes.assert_empty()


@contextmanager
def waiting(server: RunningServer, npus: int) -> Iterator[str]:
    """A model that needs a node with so many NPUs, which there is not yet."""
    model = f"npus{npus}"
    pack_service("echo", server.store, model=model, config=f"parallelType: custom\nparallelLevel: {npus}\n")
    reply = server.register(server.store / f"{model}.mar", synchronous="false")
    assert reply.status_code in (200, 202), reply.text
    told(server, model, f"{model}:1.0 needs a node with {npus} NPUs; the largest of the cluster has ")
    yield model
    assert server.management.delete(f"/models/{model}").status_code == 200


def told(server: RunningServer, model: str, words: str) -> str:
    """The description of the model, when it has these words."""
    return str(wait_until(lambda: found(server, model, words), f"it says {words!r}", lambda: text(server, model)))


def found(server: RunningServer, model: str, words: str) -> str:
    said = text(server, model)
    return said if words in said else ""


def text(server: RunningServer, model: str) -> str:
    return json.dumps(server.describe(model), ensure_ascii=False)


def serves(server: RunningServer, model: str) -> bool:
    reply = server.predict(model, b"x")
    return (reply.status_code, reply.text) == (200, "x")


def test_a_late_node_whose_clock_is_an_hour_ahead(server: RunningServer, nodes: RayCluster, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(AN_HOUR_AHEAD)
    with waiting(server, 3) as model:
        reply = server.predict(model, b"x")
        assert reply.status_code == 503
        assert f"needs a node with 3 NPUs; the largest of the cluster has 2 ({NODE})" in reply.text
        nodes.add_node(resources={"NPU": 3}, env_vars={"PYTHONPATH": str(tmp_path)})
        wait_until(lambda: serves(server, model), "it serves", server.tail)
        timed = server.predict(model, b"x", headers={"x-msx-timeout": "30"})
        assert timed.status_code == 200, timed.text


def test_a_second_server_gets_what_the_first_gives_back(
    server: RunningServer, nodes: RayCluster, tmp_path: Path
) -> None:
    """All devices of the cluster are the first one's."""
    for size in reversed([int(node["NPU"]) for node in nodes_of(server)]):
        pack_service("echo", server.store, model=f"all{size}", config=f"parallelType: custom\nparallelLevel: {size}\n")
        assert server.register(server.store / f"all{size}.mar").status_code == 200
    pack_service("echo", new_store(tmp_path), model="both", config="parallelType: custom\nparallelLevel: 2\n")
    with run_server(tmp_path, "--models", "both.mar", "--cluster-address", nodes.address, ready=False) as second:
        told(second, "both", "both:1.0 waits for 2 NPUs; free now: 0 on ")
        for model in [one["modelName"] for one in server.management.get("/models").json()["models"]]:
            assert serves(server, model)
            assert server.management.delete(f"/models/{model}").status_code == 200
        wait_until(lambda: serves(second, "both"), "the second one serves", second.tail)


def nodes_of(server: RunningServer) -> list[dict[str, float]]:
    return sorted(
        (node["resources"] for node in server.management.get("/cluster").json()["nodes"]), key=lambda one: one["NPU"]
    )


def test_a_node_with_another_version(server: RunningServer, nodes: RayCluster, tmp_path: Path) -> None:
    info = tmp_path / "msx_serve-0.0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: msx-serve\nVersion: 0.0.1\n")
    with waiting(server, 4) as model:
        nodes.add_node(resources={"NPU": 4}, env_vars={"PYTHONPATH": str(tmp_path)})
        told(
            server,
            model,
            f"Node {NODE} has msx-serve 0.0.1, and this server is {__version__}: run `pip install "
            f"msx-serve=={__version__}` there, in the Python that Ray was started with",
        )


def test_a_node_with_a_full_disk(server: RunningServer, nodes: RayCluster, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "msx", disk], capture_output=True).returncode:
        pytest.skip("only root mounts")
    try:
        with waiting(server, 6) as model:
            nodes.add_node(resources={"NPU": 6}, env_vars={"MSX_NODE_CACHE": str(disk)})
            told(server, model, f"Node {NODE}: {disk}/contents needs 16.0 MiB for the archive, and its disk has ")
            told(server, model, "make room, or set MSX_NODE_CACHE to a folder on another disk")
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            wait_until(lambda: serves(server, model), "it serves when there is room", server.tail)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_an_archive_that_is_gone_before_a_node_fetches_it(server: RunningServer, nodes: RayCluster) -> None:
    """Neither the archive nor what was unpacked of it is there when its model gets a place."""
    with waiting(server, 7) as model:
        (server.store / f"{model}.mar").unlink()
        for folder in (server.state / "models").glob("*"):
            if (folder / "echo.py").exists() and "npus7" in (folder / "MAR-INF" / "MANIFEST.json").read_text():
                shutil.rmtree(folder)
        nodes.add_node(resources={"NPU": 7})
        said = told(server, model, "cannot be unpacked again")
        assert "npus7.mar" in said
        assert server.predict(model, b"x").status_code == 503


@pytest.mark.parametrize(
    "versions", [{"ray_version": "2.9.0"}, {"python_version": "3.9.1"}], ids=["of Ray", "of Python"]
)
def test_a_cluster_with_another_version(nodes: RayCluster, tmp_path: Path, versions: dict[str, str]) -> None:
    (version,) = versions.values()
    pack_service("echo", new_store(tmp_path))
    with (
        nodes.pretended(versions),
        run_server(tmp_path, "--models", "echo.mar", "--cluster-address", nodes.address, ready=False) as server,
    ):
        words = f"The cluster at {nodes.address} (cluster_address) cannot be used by this server, which has Ray "
        assert version in told(server, "echo", f"echo:1.0 waits for the cluster: {words}")


def test_nothing_at_the_address(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    pack_service("echo", new_store(tmp_path))
    with run_server(tmp_path, "--models", "echo.mar", "--cluster-address", address, ready=False) as server:
        problem = f"Nothing answers at {address} (cluster_address): is Ray's head running there?"
        told(server, "echo", f"echo:1.0 waits for the cluster: {problem}")
        ready = server.inference.get("/readyz")
        assert problem in ready.text
        assert server.management.get("/cluster").json()["problem"] == problem
        assert problem in [line.get("message") for line in server.log_lines()] or problem in server.log.read_text()
        reply = server.predict("echo", b"x")
        assert (reply.status_code, problem in reply.text) == (503, True)
