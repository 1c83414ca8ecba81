"""Whether one more worker of a model could use a device."""

from __future__ import annotations

import pytest

from msx_frontend.devices.accelerator import Device, DeviceStatus
from msx_frontend.devices.load import BUSY, DeviceLoad

DEVICES = [Device("a", "910B"), Device("b", "910B")]


@pytest.mark.parametrize(
    ("percent", "since", "known", "busy", "spare"),
    [
        (None, 0.0, False, False, False),
        (0, 0.0, True, False, True),
        (BUSY - 1, 9.0, True, False, True),
        (BUSY - 1, 10.0, True, False, False),
        (BUSY, 0.0, True, True, False),
        (100, 0.0, True, True, False),
    ],
)
def test_one_reading(percent: int | None, since: float, *, known: bool, busy: bool, spare: bool) -> None:
    load = DeviceLoad(DEVICES)
    load.read({"b": DeviceStatus(utilisation=percent)}, 10.0)
    assert (load.known(1), load.busy(1), load.spare(1, since)) == (known, busy, spare)
    assert not load.known(0)


def test_a_device_that_is_not_read_any_more_is_not_known() -> None:
    load = DeviceLoad(DEVICES)
    load.read({"a": DeviceStatus(utilisation=90)}, 10.0)
    load.read({}, 20.0)
    assert (load.known(0), load.busy(0)) == (False, False)
