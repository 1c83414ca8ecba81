"""This machine's GPUs by NVML: what they are called, and how much of their memory is used."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Cards:
    def __init__(self, nvml: Any) -> None:
        """`nvml` is the module pynvml, initialised."""
        self._nvml = nvml

    @property
    def count(self) -> int:
        return int(self._nvml.nvmlDeviceGetCount())

    def lines(self) -> Iterator[str]:
        nvml = self._nvml
        cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
        yield f"- driver {nvml.nvmlSystemGetDriverVersion()}, made for CUDA up to {cuda // 1000}.{cuda % 1000 // 10}"
        for number in range(self.count):
            handle = nvml.nvmlDeviceGetHandleByIndex(number)
            total = nvml.nvmlDeviceGetMemoryInfo(handle).total >> 20
            yield f"- GPU {number}: {nvml.nvmlDeviceGetName(handle)}, {total:,} MiB"

    def used(self, uuid: str) -> int:
        """MiB of the GPU or MIG instance of this UUID that somebody uses."""
        handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        return int(self._nvml.nvmlDeviceGetMemoryInfo(handle).used) >> 20


@contextmanager
def cards() -> Iterator[Cards]:
    nvml: Any = importlib.import_module("pynvml")
    nvml.nvmlInit()
    try:
        yield Cards(nvml)
    finally:
        nvml.nvmlShutdown()
