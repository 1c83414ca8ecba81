"""The devices of the engine: each says itself what it can."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from msx_llm.kernels import devices
from msx_llm.kernels.cpu.device import CpuDevice
from msx_llm.kernels.devices import engine_device
from msx_sdk.errors import HandlerLoadError

FAKE: Any = object()


def test_a_device_without_kernels_is_refused_and_not_taken_for_another() -> None:
    with pytest.raises(HandlerLoadError) as refused:
        engine_device("GPU")
    assert str(refused.value) == "the language engine has no kernels for GPU devices; it has them for CPU and Ascend"


def test_a_device_that_is_added_runs_its_own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake(CpuDevice):
        target = "Fake"
        shares_memory = False

        def kernels(self, config: Any) -> Any:
            return FAKE

    monkeypatch.setattr(devices, "DEVICES", (*devices.DEVICES, Fake()))
    config: Any = None
    assert engine_device("Fake").kernels(config) is FAKE


def test_what_is_known_of_devices_needs_no_mindspore() -> None:
    """Which is imported only after `prepare`."""
    program = "import sys, msx_llm.kernels.devices; print('mindspore' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
