"""A whole server on an accelerator that is not Ascend: nothing but its own variables reaches workers and tools."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from msx_frontend.assembly.server import Server
from msx_frontend.cli import status
from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.models.describe import describe
from tests.frontend.assembly.in_process import config_of, started
from tests.frontend.devices.fake_accelerator import PORTS, VISIBLE, FakeAccelerator, add_accelerator
from tests.frontend.harness import until
from tests.frontend.packing import pack_model
from tests.loops import run
from tests.prometheus import samples

pytestmark = pytest.mark.usefixtures("_own_environment")

CRITICAL = DeviceStatus("Critical", False)
FAKE: dict[str, Any] = {"accelerator": "fake", "number_of_npu": None}


def environment(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().rstrip("\0").split("\0")
    return dict(pair.split("=", 1) for pair in pairs)


def fake_with_cores(cores: Sequence[int]) -> FakeAccelerator:
    """A device near each core."""
    fake = FakeAccelerator(len(cores))
    fake.devices = [replace(device, cores=frozenset({core})) for device, core in zip(fake.devices, cores, strict=True)]
    return fake


async def healthy(server: Server) -> list[float]:
    text = (await server.models.context.monitoring.metrics.expose(frozenset({"msx_device_healthy"}))).decode()
    return [float(line.split()[-1]) for line in text.splitlines() if not line.startswith("#")]


def busy_with(pid: int) -> DeviceStatus:
    """Its processes are this one and another program's."""
    busy = DeviceStatus("Good", True, 50, 1024, 4096, temperature=41, memory_errors={"corrected": 2})
    return replace(busy, processes={pid: 512, 1: 100})


async def samples_of_devices(server: Server) -> dict[str, float]:
    names = {"msx_device_temperature_celsius", "msx_device_memory_errors_total", "msx_worker_device_memory_bytes"}
    text = (await server.models.context.monitoring.metrics.expose(frozenset(names))).decode()
    return {name: value for name, _, value in samples(text)}


def test_a_server_on_another_accelerator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_, last = [*os.sched_getaffinity(0)] * 2
    fake = fake_with_cores([first, last, first])
    fake.statuses["f0"] = CRITICAL
    add_accelerator(monkeypatch, fake)
    monkeypatch.setitem(os.environ, VISIBLE, "inherited")
    pack_model(tmp_path, "m")
    config = config_of(
        tmp_path,
        load_models=("m.mar",),
        default_workers_per_model=1,
        bind_cores=True,
        device_check_interval=0.01,
        **FAKE,
    )

    async def test() -> None:
        async with AsyncExitStack() as parts:
            server = await started(config, parts)
            version = server.models.context.registry.find("m")
            await until(lambda: version.workers.ready == 1)
            worker = describe(version)["workers"][0]
            assert worker["devices"] == "f1", "f0 was unhealthy at the start"
            assert describe(version)["deviceType"] == "fake"
            seen = environment(worker["pid"])
            assert {name: seen[name] for name in seen if "VISIBLE" in name} == {VISIBLE: "f1"}
            assert psutil.Process(worker["pid"]).cpu_affinity() == [last]
            assert await healthy(server) == [0, 1, 1]
            fake.statuses["f1"] = busy_with(worker["pid"])
            await until(lambda: "temperature" in describe(version)["workers"][0]["deviceUsage"][0])
            shown = describe(version)["workers"][0]
            expected = "gpuId::1 utilization.gpu [%]::50 % utilization.memory [%]::[N/A] memory.used [MiB]::1024 MiB"
            assert (shown["gpuUsage"], shown["deviceUsage"][0]["workerMemory"]) == (expected, 512 << 20)
            assert await samples_of_devices(server) == {
                "msx_device_temperature_celsius": 41,
                "msx_device_memory_errors_total": 2,
                "msx_worker_device_memory_bytes": 512 << 20,
            }
            assert await asyncio.to_thread(status.show, server.info)
            told = capsys.readouterr().out
            assert "device 0 (id f0) is unhealthy: Critical" in told
            assert " ".join(told.split()).count("1 f1 Fake 1 50 % 1024 of 4096 MB 41 °C 2 corrected") == 1
            assert " 1 (512 MB) " in told
            fake.statuses["f1"] = CRITICAL
            await until(lambda: version.workers.ready == 1 and describe(version)["workers"][0]["devices"] == "f2")
            assert server.health.detail() == "Ready; unhealthy devices: 0 (Critical), 1 (Critical)"
            end = version.workers.all[0].last_end
            assert end is not None
            assert end.reason == "The worker had to leave its devices: device 1 is unhealthy (Critical)."

    run(test())


def test_an_accelerator_that_is_added_is_served_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks compute on the CPU here, because MindSpore's library for the fake does not load."""
    add_accelerator(monkeypatch, FakeAccelerator(3))
    monkeypatch.setitem(os.environ, VISIBLE, "inherited")
    pack_model(tmp_path / "store", "one", service="env", config="deviceIds: [0]\n")
    pack_model(
        tmp_path / "store", "two", service="env", config="parallelType: tp\nparallelLevel: 2\ndeviceIds: [1, 2]\n"
    )
    pack_model(tmp_path / "store", "cpu", service="env", config="deviceType: cpu\n")
    models = ("one.mar", "two.mar", "cpu.mar")
    config = config_of(tmp_path, load_models=models, default_workers_per_model=1, disable_system_metrics=False, **FAKE)

    async def test() -> None:
        async with AsyncExitStack() as parts:
            server = await started(config, parts)
            registry = server.models.context.registry
            await until(lambda: all(registry.find(name).workers.ready == 1 for name in ("one", "two", "cpu")))
            async with httpx.AsyncClient(timeout=60) as client:
                asked = [
                    (await client.post(f"{server.info.inference}/predictions/{name}")).json()
                    for name in ("one", "two", "cpu")
                ]
                seen = [
                    {name: value for name, value in answer["environ"].items() if name in (VISIBLE, PORTS)}
                    for answer in asked
                ]
                assert seen == [{VISIBLE: "f0"}, {VISIBLE: "f1+f2", PORTS: "7000-7009"}, {VISIBLE: ""}]
                assert [answer["device_id"] for answer in asked] == [0, 0, None]
                text = (await client.get(f"{server.info.metrics}/metrics")).text
                used = [line.split()[-1] for line in text.splitlines() if line.startswith("GPUUtilization{")]
                assert used == ["50.0"] * 3
                report = (await client.get(f"{server.info.management}/models/two")).json()[0]
                assert (report["deviceType"], report["workers"][0]["devices"]) == ("fake", "f1,f2")

    run(test())
