"""Keys of the configuration reach the parts of the server that they bound; what the parts make of them has its own
tests."""

from __future__ import annotations

from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from msx_core.config import ModelConfig
from msx_frontend.assembly import context, http_front, monitoring
from msx_frontend.assembly.devices import FoundDevices, ServerDevices
from msx_frontend.config import ServerConfig
from msx_frontend.devices.errors import DevicesHeldError
from msx_frontend.keys.opening import open_keys
from msx_frontend.metrics.system import SystemMetrics
from msx_frontend.resources.limits import parallel_starts, worker_processes
from msx_net.heartbeats import StreamHeartbeats
from tests.frontend.assembly.in_process import config_of, started
from tests.frontend.front import front_of
from tests.frontend.harness import in_harness
from tests.loops import run

pytestmark = pytest.mark.usefixtures("_own_environment")


@pytest.mark.parametrize(
    ("name", "key", "value", "place"),
    [("TextModels", "default_llm", "m", 1), ("limit_to", "max_request_elements", 7, 0)],
)
def test_what_text_apis_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, key: str, value: Any, place: int
) -> None:
    given: list[Any] = []
    inner = getattr(http_front, name)

    def noted(*arguments: Any) -> Any:
        given.append(arguments[place])
        return inner(*arguments) if name == "TextModels" else None

    monkeypatch.setattr(http_front, name, noted)

    async def scenario(harness: Any) -> None:
        front_of(harness)

    in_harness(tmp_path, scenario, **{key: value})
    assert given == [value]


@pytest.mark.parametrize("exclusive", [True, False])
def test_groups_that_share_no_device(exclusive: bool) -> None:
    async def test() -> None:
        config = ServerConfig(simulate_devices=2, exclusive_group_devices=exclusive)
        devices = ServerDevices(config, await FoundDevices.look(config))
        devices.resources.devices.lease("a", ModelConfig())
        with pytest.raises(DevicesHeldError) if exclusive else nullcontext():
            devices.resources.devices.lease("group", ModelConfig(parallel_type="custom", parallel_level=2))
        await devices.close()

    run(test())


@pytest.mark.parametrize("keep", [True, False])
def test_keys_that_survive_a_restart(tmp_path: Path, keep: bool) -> None:
    async def test() -> None:
        opened = open_keys(ServerConfig(keep_tokens=keep), tmp_path / "key_file.json", {})
        await opened.close()

    run(test())
    assert (tmp_path / "key_file.json").exists() == keep


def test_the_memory_of_a_worker(tmp_path: Path) -> None:
    """The server's, unless the model has its own."""

    async def scenario(harness: Any) -> None:
        await harness.register("m")
        await harness.register("n", config="maxWorkerMemory: 50\n")
        most = {name: harness.registry.find(name).config.max_worker_memory for name in "mn"}
        assert most == {"m": 100, "n": 50}

    in_harness(tmp_path, scenario, max_worker_memory=100)


def test_the_number_of_workers_and_of_those_that_start() -> None:
    config = ServerConfig(max_worker_processes=3, parallel_starts=1000)
    assert (worker_processes(config, devices=8), parallel_starts(config)) == (3, 1000)


def test_the_silence_of_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def noted(seconds: float) -> StreamHeartbeats:
        given.append(seconds)
        return StreamHeartbeats(seconds)

    monkeypatch.setattr(context, "StreamHeartbeats", noted)

    async def test() -> None:
        async with AsyncExitStack() as parts:
            await started(config_of(tmp_path, stream_heartbeat=7.0), parts)

    run(test())
    assert given == [7.0]


def test_the_time_between_two_looks_at_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    inner = SystemMetrics

    def noted(collect: Any, add: Any, interval: float) -> Any:
        given.append(interval)
        return inner(collect, add, interval)

    monkeypatch.setattr(monitoring, "SystemMetrics", noted)

    async def test() -> None:
        async with AsyncExitStack() as parts:
            await started(config_of(tmp_path, disable_system_metrics=False, metric_time_interval=7), parts)

    run(test())
    assert given == [7.0]
