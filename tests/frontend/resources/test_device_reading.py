"""Which memory on a device is whose: a worker has that of its processes and of those that they have started."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from msx_frontend.devices.accelerator import DeviceStatus
from msx_frontend.resources.device_reading import MB, DeviceReading


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "600"])
    yield process.pid
    process.kill()
    process.wait()


def reading(processes: dict[int, int] | None) -> DeviceReading:
    return DeviceReading({"f0": DeviceStatus(processes=processes)})


def test_memory_of_a_process_and_of_those_that_it_has_started(child: int) -> None:
    read = reading({child: 100, os.getpid(): 20, 1: 3})
    assert read.memory("f0", [child]) == 100 * MB
    assert read.memory("f0", [os.getpid()]) == 120 * MB
    assert read.memory("f0", [os.getpid(), child]) == 120 * MB


def test_memory_of_other_processes_is_nobodys(child: int) -> None:
    assert reading({1: 3}).memory("f0", [os.getpid(), child]) == 0
    assert reading({child: 100}).memory("f0", []) == 0


def test_a_process_that_has_ended_meanwhile() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert reading({ended.pid: 7}).memory("f0", [os.getpid()]) == 0


def test_where_the_driver_names_no_processes(child: int) -> None:
    assert reading(None).memory("f0", [child]) is None
    assert reading({}).memory("f1", [child]) is None, "the device was not read"
    assert DeviceReading().memory("f0", [child]) is None
