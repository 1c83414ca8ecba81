"""A server is started part by part, and a start that fails leaves everything as it was."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from msx_core.start_errors import StartError
from msx_frontend.assembly.handover import Handover
from msx_frontend.assembly.server import Server
from msx_frontend.config import ModelDefaults, ServerConfig, Snapshot
from msx_frontend.deferred.book import WantedJob
from msx_frontend.deferred.records import Deferred
from msx_frontend.models.state.store import StateStore
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.supervision.client import OtherFrontend, SupervisorClient
from msx_net.grpc.listen import GrpcListenError
from msx_net.listening.address import Address
from msx_net.listening.bind import ListenError
from tests.free_ports import free_port
from tests.frontend.assembly.in_process import config_of, started
from tests.frontend.packing import pack_model
from tests.loops import run

pytestmark = pytest.mark.usefixtures("_own_environment")


def remembered(folder: Path) -> list[str]:
    store = StateStore(folder / "store" / ".msx" / "state.db")
    try:
        return [record.name for record in store.load_all()]
    finally:
        store.close()


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def start_fails(config: ServerConfig, error: type[StartError]) -> None:
    async def test() -> None:
        with pytest.raises(error):
            async with AsyncExitStack() as parts:
                await started(config, parts)

    run(test())


def not_ready_because(config: ServerConfig) -> str:
    """Reason of a server whose model `m` has loaded."""

    async def test() -> str:
        async with AsyncExitStack() as parts:
            server = await started(config, parts)
            await server.models.context.registry.find("m").workers.settled()
            return server.health.not_ready_because()

    return run(test())


def test_a_server_starts_and_stops(tmp_path: Path) -> None:
    pack_model(tmp_path, "m")
    config = config_of(tmp_path, load_models=("m.mar",))

    async def test() -> None:
        async with AsyncExitStack() as parts:
            server = await started(config, parts)
            assert server.health.started
            assert server.models.only_model() == "m"
            assert (tmp_path / "store" / ".msx" / "server.json").exists()
            server.models.context.registry.find("m")
            await server.drain(0)
            assert server.health.not_ready_because() == "the server is shutting down"

    run(test())
    assert remembered(tmp_path) == ["m"]
    left = {path.name for path in (tmp_path / "store" / ".msx").iterdir()}
    assert left == {"models", "server.lock", "state.db"}


def test_the_limit_of_mindspore_servings_requests_is_a_key(tmp_path: Path) -> None:
    async def test() -> None:
        async with AsyncExitStack() as parts:
            server = await started(config_of(tmp_path, max_enqueued_requests=7), parts)
            assert server.models.context.registry.enqueued.limit == 7

    run(test())


class NextFrontend(SupervisorClient):
    """A supervisor that lets nobody follow."""

    def __init__(self) -> None:
        self.near, self.far = socket.socketpair()

    def hand_over(self, limit: float, jobs: Sequence[str]) -> OtherFrontend:
        return OtherFrontend(self.near, followed=False)


async def hand_over(server: Server, limit: float) -> None:
    supervisor = NextFrontend()
    handover = Handover(server, supervisor, limit)
    await handover.run()
    await handover.close()
    supervisor.far.close()


@pytest.mark.parametrize("end", [Server.drain, hand_over])
def test_a_server_that_ends_starts_no_further_jobs(
    tmp_path: Path, end: Callable[[Server, float], Awaitable[None]]
) -> None:
    async def test() -> None:
        async with AsyncExitStack() as parts:
            server = await started(config_of(tmp_path, jobs=True), parts)
            jobs = server.front.late.jobs
            assert jobs is not None
            await end(server, 0.0)
            asked = Deferred(b"/predictions/m", [], b"")
            jobs.add((await jobs.book.accept(asked, WantedJob("/predictions/m", ""))).job)
            assert not jobs.is_busy

    run(test())


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"ready_when": "all"}, "not serving: n (failed)"),
        ({"ready_when": "any"}, ""),
        ({"ready_when": "any", "readyz_strict": True}, "not serving: n (failed)"),
    ],
)
def test_which_models_must_serve(tmp_path: Path, keys: dict[str, Any], why: str) -> None:
    """One of two that are remembered is lost."""
    lost = pack_model(tmp_path / "store", "n")
    pack_model(tmp_path / "store", "m")
    not_ready_because(config_of(tmp_path, load_models=("m.mar", "n.mar"), default_workers_per_model=1))
    lost.unlink()
    assert not_ready_because(config_of(tmp_path, **keys)) == why


def test_a_start_that_fails_on_a_grpc_port_remembers_no_models(tmp_path: Path) -> None:
    pack_model(tmp_path, "m")
    with taken_port() as port:
        config = config_of(tmp_path, load_models=("m.mar",), grpc_management_port=port)
        start_fails(config, GrpcListenError)
    assert not (tmp_path / "store" / ".msx" / "state.db").exists(), "the file was made by this start"
    assert not (tmp_path / "store" / ".msx" / "server.json").exists()
    start_with("m.mar", tmp_path)
    assert remembered(tmp_path) == ["m"]


def start_with(model: str, folder: Path) -> None:
    async def test() -> None:
        async with AsyncExitStack() as parts:
            await started(config_of(folder, load_models=(model,)), parts)

    run(test())


def test_a_start_that_fails_leaves_an_earlier_state(tmp_path: Path) -> None:
    pack_model(tmp_path, "m")
    pack_model(tmp_path, "n")
    start_with("m.mar", tmp_path)
    with taken_port() as port:
        config = config_of(tmp_path, load_models=("n.mar",), grpc_inference_port=port)
        start_fails(config, GrpcListenError)
    assert remembered(tmp_path) == ["m"]


def test_a_start_that_fails_gives_back_what_it_has_taken(tmp_path: Path) -> None:
    port = free_port()
    address = Address("http", "127.0.0.1", port)
    with taken_port() as other:
        config = config_of(tmp_path, inference_address=address, management_address=Address("http", "127.0.0.1", other))
        start_fails(config, ListenError)
        start_fails(config, ListenError)  # the lock of the state folder is free, too
    start_fails(config_of(tmp_path, inference_address=address, load_models=("gone.mar",)), StartError)
    ours = psutil.Process().net_connections("tcp")  # whether anybody else has taken it is nobody's fault
    assert port not in {one.laddr.port for one in ours if one.laddr}


def test_a_start_that_fails_late_stops_what_answers_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its workers are gone, and its models are not remembered."""
    pack_model(tmp_path, "m")
    closed: list[str] = []
    close = ModelVersion.close

    async def noted(version: ModelVersion, limit: float) -> None:
        await close(version, limit)
        closed.append(version.source.name)

    def full(*_: object) -> None:
        raise StartError("the disk is full")

    monkeypatch.setattr(ModelVersion, "close", noted)
    monkeypatch.setattr("msx_frontend.assembly.instance.Instance.publish", full)
    start_fails(config_of(tmp_path, load_models=("m.mar",)), StartError)
    assert closed == ["m"]
    assert not (tmp_path / "store" / ".msx" / "state.db").exists()


def test_the_last_snapshot_counts_also_after_a_start_that_failed(tmp_path: Path) -> None:
    pack_model(tmp_path, "m")
    last = Snapshot({"m": {"1.0": ModelDefaults(mar_name=str(tmp_path / "m.mar"), min_workers=0)}}, last_known=True)
    with taken_port() as port:
        start_fails(config_of(tmp_path, model_snapshot=last, grpc_inference_port=port), GrpcListenError)

    async def test() -> None:
        async with AsyncExitStack() as parts:
            server = await started(config_of(tmp_path, model_snapshot=last), parts)
            assert server.models.context.registry.names() == ["m"]

    run(test())
