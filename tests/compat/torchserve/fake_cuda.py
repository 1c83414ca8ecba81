"""A torch whose GPU computes when it is waited for: what was put into its stream runs in order at an event."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

UNSET = "not copied yet"


@dataclass(frozen=True)
class Device:
    type: str
    index: int | None = None


CPU, GPU, OTHER_GPU = Device("cpu"), Device("cuda", 0), Device("cuda", 1)


def device_of(name: str) -> Device:
    kind, _, index = name.partition(":")
    return Device(kind, int(index) if index else None)


class Stream:
    """Work that was started and is not done. `now`: milliseconds, by which each kernel puts the clock forward."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.now = 0.0

    def run(self) -> None:
        while self.waiting:
            self.step()

    def step(self) -> None:
        self.waiting.pop(0)()


class Event:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.time: Any = UNSET

    def record(self, stream: Stream) -> None:
        assert stream is self._stream
        stream.waiting.append(lambda: setattr(self, "time", stream.now))

    def synchronize(self) -> None:
        while self.time is UNSET:
            self._stream.step()

    def elapsed_time(self, end: Any) -> Any:
        return end.time - self.time


@dataclass
class Tensor:
    """Numbers on a device. `log`: the copies of all tensors of the torch, as (from, to, whether the CPU waited)."""

    values: Any
    torch: FakeTorch
    device: Device = CPU
    pinned: bool = False
    dtype: str = "float32"

    @property
    def shape(self) -> tuple[int, ...]:
        shape, values = [], self.values
        while isinstance(values, list):
            shape.append(len(values))
            values = values[0]
        return tuple(shape)

    def pin_memory(self) -> Tensor:
        assert self.device == CPU
        return replace(self, pinned=True)

    def to(self, target: Any, non_blocking: bool = False) -> Tensor:
        target = device_of(target) if isinstance(target, str) else target
        if target == self.device:
            return self
        waits = not non_blocking or (self.device == CPU and not self.pinned)
        self.torch.log.append((self.device.type, target.type, waits))
        copy = Tensor(UNSET, self.torch, target, target == CPU and non_blocking, self.dtype)
        self.torch.stream.waiting.append(lambda: setattr(copy, "values", self.values))
        if waits:
            self.torch.stream.run()
        return copy

    def tolist(self) -> Any:
        assert self.device == CPU, "it is not on the CPU"
        return self.values


class FakeTorch:
    """Installed as `torch` by `install`."""

    def __init__(self) -> None:
        self.stream = Stream()
        self.log: list[tuple[str, str, bool]] = []
        self.cuda: Any = SimpleNamespace(
            is_available=lambda: True,
            get_device_capability=lambda device: (7, 5),
            current_stream=lambda device: self.stream,
            Event=lambda enable_timing: Event(self.stream),
        )
        self.jit = SimpleNamespace(load=lambda path, map_location: self.network)
        self.device, self.Tensor = device_of, Tensor
        self.inference_mode = nullcontext
        self.network: Any = Network(self)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Tensor)

    def as_tensor(self, values: Any, device: Device = CPU) -> Tensor:
        return values if isinstance(values, Tensor) else Tensor(values, self).to(device)

    def empty(self, shape: tuple[int, ...], dtype: str, pin_memory: bool) -> Tensor:
        return Tensor(UNSET, self, pinned=pin_memory, dtype=dtype)

    def stack(self, tensors: Sequence[Tensor], out: Tensor | None = None) -> Tensor:
        out = Tensor(UNSET, self, tensors[0].device) if out is None else out
        out.values = [one.values for one in tensors]
        return out


class Network:
    """Doubles rows; each call takes the GPU 5 ms. `error`: what its kernels raise."""

    def __init__(self, torch: FakeTorch) -> None:
        self.torch = torch
        self.error: Exception | None = None
        self.eval = lambda: None

    def __call__(self, rows: Tensor) -> Tensor:
        output = Tensor(UNSET, self.torch, rows.device)

        def kernel() -> None:
            self.torch.stream.now += 5
            if self.error is not None:
                raise self.error
            output.values = [[2 * number for number in row] for row in rows.values]

        self.torch.stream.waiting.append(kernel)
        if rows.device == CPU:
            self.torch.stream.run()
        return output


def install(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    torch = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch
