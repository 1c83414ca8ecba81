"""A whole server on an accelerator that is not Ascend: nothing but its own variables reaches workers and tools."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from msx_frontend.assembly import devices
from msx_frontend.assembly.server import Server
from msx_frontend.cli import status
from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.models.describe import describe
from tests.unit.frontend.assembly.in_process import config_of, started
from tests.unit.frontend.devices.fake_accelerator import VISIBLE, FakeAccelerator
from tests.unit.frontend.harness import until
from tests.unit.frontend.jobs import run
from tests.unit.frontend.packing import pack_model

pytestmark = pytest.mark.usefixtures("_own_environment")

CRITICAL = DeviceStatus("Critical", False)


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


def test_a_server_on_another_accelerator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_, last = [*os.sched_getaffinity(0)] * 2
    fake = fake_with_cores([first, last, first])
    fake.statuses["f0"] = CRITICAL
    monkeypatch.setattr(devices, "choose_accelerator", lambda number, env: (fake, fake.devices))
    monkeypatch.setitem(os.environ, VISIBLE, "inherited")
    pack_model(tmp_path, "m")
    config = config_of(
        tmp_path, load_models=("m.mar",), default_workers_per_model=1, bind_cores=True, device_check_interval=0.01
    )

    async def test() -> None:
        async with AsyncExitStack() as parts:
            server = await started(config, parts)
            version = server.models.context.registry.find("m")
            await until(lambda: version.ready_workers == 1)
            worker = describe(version)["workers"][0]
            assert worker["devices"] == "f1", "f0 was unhealthy at the start"
            assert describe(version)["deviceType"] == "fake"
            seen = environment(worker["pid"])
            assert {name: seen[name] for name in seen if "VISIBLE" in name} == {VISIBLE: "f1"}
            assert psutil.Process(worker["pid"]).cpu_affinity() == [last]
            assert await healthy(server) == [0, 1, 1]
            assert await asyncio.to_thread(status.show, server.info)
            assert "device 0 (id f0) is unhealthy: Critical" in capsys.readouterr().out
            fake.statuses["f1"] = CRITICAL
            await until(lambda: version.ready_workers == 1 and describe(version)["workers"][0]["devices"] == "f2")
            assert server.health.detail() == "Ready; unhealthy devices: 0 (Critical), 1 (Critical)"
            end = version.replicas[0].last_end
            assert end is not None
            assert end.reason == "The worker had to leave its devices: device 1 is unhealthy (Critical)."

    run(test())
