"""Log lines when groups share devices."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from msx_frontend.devices.accelerator import Device, DeviceStatus
from msx_frontend.devices.lease import Lease
from msx_frontend.devices.sharing_log import SharingLog
from msx_frontend.devices.sharing_terms import SharingTerms
from tests.loops import run

DEVICES = tuple(Device(id, "910B") for id in "456")
STATUSES = {"4": DeviceStatus("OK", True, 0, 5536, 65536), "5": DeviceStatus("OK", True)}
COPY = Lease("m:1.0", (0,), DEVICES[:1], SharingTerms(most=2))
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


@pytest.mark.parametrize(
    ("status", "left", "level"),
    [
        (DeviceStatus("OK", True, 0, 20000, 65536), "45536 of 65536 MB of its memory are left", "INFO"),
        (DeviceStatus("OK", True, 0, 50000, 65536), "15536 of 65536 MB of its memory are left", "WARNING"),
        (DeviceStatus("OK", True), "how much memory is left on it is not known", "INFO"),
    ],
)
def test_another_copy_of_a_model_names_the_memory(
    caplog: pytest.LogCaptureFixture, status: DeviceStatus, left: str, level: str
) -> None:
    async def test() -> None:
        sharing = SharingLog(lambda: {"4": status})
        sharing.add(replace(COPY), [COPY, Lease("other:1.0", (0,))])
        while not caplog.messages:
            await asyncio.sleep(0)
        await sharing.close()

    with caplog.at_level(logging.INFO, "msx.devices"):
        run(test())
    advice = ", less than a worker there has: lower workersPerDevice if it does not load" if level == "WARNING" else ""
    assert caplog.messages == [f"m:1.0 has 2 workers on device 0, each with a copy of the model ({left}){advice}"]
    assert [record.levelname for record in caplog.records] == [level]


def test_it_may_be_closed_before_anything_was_shared() -> None:
    run(SharingLog(lambda: STATUSES).close())
