"""A torch that only looks as if it computed on GPUs: what workers ask of its module `cuda`."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from msx_core.torch_devices import TorchDevices

VISIBLE = "CUDA_VISIBLE_DEVICES"
NONE_GIVEN = TorchDevices("cuda", "GPU", VISIBLE)
ONE_GIVEN = TorchDevices("cuda", "GPU", VISIBLE, 1)
ASSERTED = """CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
"""


class AcceleratorError(RuntimeError):
    """torch's own, of errors of CUDA."""


class FakeCuda:
    """`count` GPUs; `failures` has the number of calls of `synchronize` that fail, by GPU."""

    def __init__(self, count: int = 1, *, available: bool = True, initialized: bool = True) -> None:
        self.count, self.available, self.initialized = count, available, initialized
        self.failures: dict[int, int] = {}
        self.reserved: dict[int, int] = {}
        self.asked: list[str | int] = []

    def is_initialized(self) -> bool:
        return self.initialized

    def is_available(self) -> bool:
        self.asked.append("is_available")
        return self.available

    def device_count(self) -> int:
        self.asked.append("device_count")
        return self.count

    def current_device(self) -> int:
        return 0

    def memory_reserved(self, device: int) -> int:
        return self.reserved.get(device, 0)

    def synchronize(self, device: int) -> None:
        self.asked.append(device)
        if left := self.failures.get(device, 0):
            self.failures[device] = left - 1
            raise AcceleratorError(ASSERTED)


def install(monkeypatch: pytest.MonkeyPatch, cuda: Any, built_for: str | None = "12.8") -> None:
    """From now on `torch` is imported, with this module `cuda`."""
    torch: Any = SimpleNamespace(cuda=cuda, __version__="2.11.0", version=SimpleNamespace(cuda=built_for))
    monkeypatch.setitem(sys.modules, "torch", torch)
