"""Log lines when groups share devices."""

from __future__ import annotations

import asyncio

import pytest

from msx_frontend.devices.accelerator import Device, DeviceStatus
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.sharing_log import SharingLog
from tests.loops import run

DEVICES = tuple(Device(id, "910B") for id in "456")
STATUSES = {"4": DeviceStatus("OK", True, 0, 5536, 65536), "5": DeviceStatus("OK", True)}
WORKERS = [Lease("echo:1.0", (0,)), Lease("echo:1.0", (0,)), Lease("other:1.0", (0,)), Lease("more:1.0", (1,))]


def test_the_others_and_the_memory_that_is_left_are_named(caplog: pytest.LogCaptureFixture) -> None:
    looks = 0

    def look() -> dict[str, DeviceStatus]:
        nonlocal looks
        looks += 1
        return STATUSES

    async def test() -> None:
        sharing = SharingLog(look)
        sharing.add(Lease("big:1.0", (0, 1, 2), DEVICES), WORKERS)
        sharing.add(Lease("late:1.0", (1,), DEVICES[1:2]), WORKERS)
        while len(caplog.messages) < 2:
            await asyncio.sleep(0)
        await sharing.close()

    run(test())
    unknown = "how much memory is left on it is not known"
    assert caplog.messages == [
        "big:1.0 shares device 0 with echo:1.0 and other:1.0 (60000 of 65536 MB of its memory are left), "
        f"device 1 with more:1.0 ({unknown})",
        f"late:1.0 shares device 1 with more:1.0 ({unknown})",
    ]
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert looks == 1


def test_it_may_be_closed_before_anything_was_shared() -> None:
    run(SharingLog(lambda: STATUSES).close())
