"""What is said when groups share devices."""

from __future__ import annotations

import asyncio

import pytest

from msx_frontend.devices.lease import Lease
from msx_frontend.devices.npu_smi import ChipStatus
from msx_frontend.devices.npus import Npu
from msx_frontend.devices.sharing import SharingLog
from tests.unit.frontend.jobs import run

NPUS = [
    Npu(4, "910B", status=ChipStatus("910B", "OK", 0, 5536, 65536)),
    Npu(5, "910B", status=ChipStatus("910B", "OK")),
    Npu(6, "910B"),
]
WORKERS = [Lease("echo:1.0", (0,)), Lease("echo:1.0", (0,)), Lease("other:1.0", (0,)), Lease("more:1.0", (1,))]


def test_the_others_and_the_memory_that_is_left_are_named(caplog: pytest.LogCaptureFixture) -> None:
    looks = 0

    def look() -> list[Npu]:
        nonlocal looks
        looks += 1
        return NPUS

    async def test() -> None:
        sharing = SharingLog(look)
        sharing.told(Lease("big:1.0", (0, 1, 2)), WORKERS)
        sharing.told(Lease("late:1.0", (1,)), WORKERS)
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
    run(SharingLog(lambda: NPUS).close())
