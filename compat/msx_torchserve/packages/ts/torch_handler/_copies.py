"""Copies between the CPU and a GPU for which no thread waits before it needs them: they go through pinned memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._extras import need


def on_gpu(device: Any) -> bool:
    """Whether it is a GPU's; handlers of users may have a text as their device, or none."""
    return getattr(device, "type", None) == "cuda"


def to_device(tensor: Any, device: Any) -> Any:
    """The tensor on the device. A GPU gets it in the order of its stream, behind what runs there."""
    if on_gpu(device) and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def stacked(tensors: Sequence[Any], device: Any) -> Any:
    """One tensor of all on the device; on their way to a GPU they are copied once, into pinned memory."""
    torch, first = need("torch"), tensors[0]
    if not on_gpu(device) or any(one.device.type != "cpu" or one.dtype != first.dtype for one in tensors):
        return torch.stack(tensors).to(device)
    buffer = torch.empty((len(tensors), *first.shape), dtype=first.dtype, pin_memory=True)
    return torch.stack(tensors, out=buffer).to(device, non_blocking=True)


class DeviceRun:
    """A batch that a GPU computes, from before its kernels are started until its results are in the CPU's memory."""

    def __init__(self, device: Any) -> None:
        cuda = need("torch").cuda
        self._device, self._stream = device, cuda.current_stream(device)
        self._began, self._ended = (cuda.Event(enable_timing=True) for _ in range(2))
        self._began.record(self._stream)
        self.values: Any = None
        """The results, whose numbers are there after `wait`."""

    def copy(self, results: Any) -> None:
        """Start the copies of the results' tensors."""
        self.values = self._copied(results)
        self._ended.record(self._stream)

    def wait(self) -> float:
        """Wait for the results. Returns the milliseconds that the GPU took, without those of the batch before.

        Raises what torch says of a kernel of this batch that failed.
        """
        self._ended.synchronize()
        milliseconds: float = self._began.elapsed_time(self._ended)
        return milliseconds

    def _copied(self, results: Any) -> Any:
        if isinstance(results, dict):
            return {name: self._copied(result) for name, result in results.items()}
        if isinstance(results, (list, tuple)):
            return [self._copied(result) for result in results]
        if not need("torch").is_tensor(results):
            return results
        # torch takes pinned memory for a copy that it does not wait for. The stream is that of one GPU.
        return results.to("cpu", non_blocking=results.device == self._device)
