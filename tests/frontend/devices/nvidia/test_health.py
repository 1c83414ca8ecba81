"""A GPU is unhealthy by what NVML says of the card, and not by what programs on it have done."""

from __future__ import annotations

import logging

import pytest

from msx_frontend.devices.nvidia.gpus import NvidiaGpu
from msx_frontend.devices.nvidia.health import APPLICATION_XIDS, XidLog, fault
from msx_frontend.devices.nvidia.messages import GpuFigures, Xid

CARD = NvidiaGpu("GPU-a", "H100", gpu="GPU-a")
FIRST = NvidiaGpu("MIG-1", "1g", gpu="GPU-b", instance=(1, 0))
SECOND = NvidiaGpu("MIG-2", "1g", gpu="GPU-b", instance=(2, 0))


@pytest.mark.parametrize(
    ("figures", "xid", "word"),
    [
        (GpuFigures("GPU-a"), None, ""),
        (GpuFigures("GPU-a", memory_errors={"uncorrected": 9}), None, ""),
        (GpuFigures("GPU-a"), 79, "XID 79"),
        (GpuFigures("GPU-a", error=15), 79, "lost"),
        (GpuFigures("GPU-a", error=16), None, "reset required"),
        (GpuFigures("GPU-a", remap_pending=True), None, "row remapping pending"),
        (GpuFigures("GPU-a", remap_pending=True, remap_failed=True), None, "row remapping failed"),
        (GpuFigures("GPU-a", remap_failed=True), 63, "XID 63"),
    ],
)
def test_the_worst_is_named(figures: GpuFigures, xid: int | None, word: str) -> None:
    assert fault(figures, xid) == word


def test_the_first_xid_of_a_card_is_kept() -> None:
    xids = XidLog()
    xids.add([Xid("GPU-a", 48), Xid("GPU-a", 63)])
    xids.add([Xid("GPU-a", 79)])
    assert (xids.find(CARD), xids.find(FIRST)) == (48, None)


def test_an_xid_of_an_instance_is_of_no_other() -> None:
    xids = XidLog()
    xids.add([Xid("GPU-b", 94, 2, 0)])
    assert (xids.find(FIRST), xids.find(SECOND)) == (None, 94)
    xids.add([Xid("GPU-b", 79)])
    assert (xids.find(FIRST), xids.find(SECOND)) == (79, 79)


def test_xids_that_programs_cause_are_logged_once_a_reading(caplog: pytest.LogCaptureFixture) -> None:
    xids = XidLog()
    with caplog.at_level(logging.WARNING):
        xids.add([Xid("GPU-a", number) for number in sorted(APPLICATION_XIDS) for _ in range(2)])
    assert xids.find(CARD) is None
    assert len(caplog.messages) == len(APPLICATION_XIDS)
    assert caplog.messages[0] == "GPU GPU-a reports XID 13, which a program on it causes: it stays healthy"
