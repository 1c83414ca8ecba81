"""The devices of a server: what its log says of them at the start, and what ends with it."""

from __future__ import annotations

import asyncio

import pytest

from msx_frontend.assembly.devices import FoundDevices, ServerDevices
from msx_frontend.config import ServerConfig
from msx_frontend.devices.accelerator import Device
from msx_frontend.devices.choose import KNOWN
from msx_frontend.devices.settings import NoDevicesError
from msx_frontend.findings import failed
from tests.frontend.devices.fake_accelerator import FakeAccelerator, add_accelerator


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAccelerator:
    fake = FakeAccelerator(2)
    add_accelerator(monkeypatch, fake)
    return fake


def _real(devices: ServerDevices) -> list[Device]:
    return [device for device in devices.resources.devices.devices if not device.simulated]


def find(**keys: object) -> ServerDevices:
    async def found_and_closed() -> ServerDevices:
        config = ServerConfig(**keys)  # type: ignore[arg-type]
        found = await FoundDevices.look(config)
        devices = ServerDevices(config, found)
        assert len(list(devices.figures())) == len(_real(devices))
        await devices.close()
        await found.close()
        return devices

    return asyncio.run(found_and_closed())


def test_what_could_not_be_read_is_a_warning(
    fake: FakeAccelerator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fake, "problems", lambda: [failed("FPUs", "f2 cannot be read", "Mend it.")])
    find(accelerator="fake")
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [("WARNING", "f2 cannot be read. Mend it")]


def test_its_devices_are_read_no_more_after_the_end(fake: FakeAccelerator) -> None:
    devices = find(accelerator="fake")
    assert fake.closed
    assert list(devices.figures()) == []


@pytest.mark.parametrize(("interval", "readings"), [(15, 1), (0, 2)])
def test_metrics_take_what_the_watch_has_read(fake: FakeAccelerator, interval: int, readings: int) -> None:
    async def test() -> None:
        config = ServerConfig(accelerator="fake", device_check_interval=interval)
        devices = ServerDevices(config, await FoundDevices.look(config))
        assert [len(list(devices.figures())) for _ in range(2)] == [2, 2]
        await devices.close()

    asyncio.run(test())
    assert fake.readings == readings


def test_a_kind_that_is_named_and_not_there_ends_the_start(fake: FakeAccelerator) -> None:
    fake.devices.clear()
    with pytest.raises(NoDevicesError, match=r"^accelerator=fake: no FPU was found"):
        find(accelerator="fake")
    assert fake.closed


def test_a_server_of_a_cluster_needs_none_here(fake: FakeAccelerator, caplog: pytest.LogCaptureFixture) -> None:
    """Models run on the nodes, whose devices Ray knows."""
    fake.devices.clear()
    devices = find(accelerator="fake", cluster_address="auto", number_of_npu=4, simulate_devices=4)
    assert (devices.resources.devices.count, caplog.records) == (0, [])


def test_simulated_devices(caplog: pytest.LogCaptureFixture) -> None:
    """Simulated devices are of the first kind that the server knows."""
    pool = find(simulate_devices=3).resources.devices
    assert ([device.simulated for device in pool.devices], caplog.records) == ([True] * 3, [])
    assert pool._accelerator.kind == KNOWN[0].kind
