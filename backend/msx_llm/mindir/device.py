"""Tensors of MindSpore for the runner: caches stay on the device from call to call."""

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops

from msx_core.mindir import TensorSpec
from msx_llm.step import Array


class MindSporeDevice:
    def tensor(self, array: np.ndarray[Any, Any]) -> Any:
        return ms.Tensor(np.ascontiguousarray(array))

    def zeros(self, spec: TensorSpec) -> Any:
        return ops.zeros(spec.shape, getattr(ms, spec.dtype))

    def logits(self, tensor: Any) -> Array:
        array: Array = tensor.astype(ms.float32).asnumpy()
        return array

    def place(self, cache: Any, made: Any, axis: int, slot: int, row: int) -> Any:
        part = _part(made, axis, row, row + 1)
        for other, (size, own) in enumerate(zip(cache.shape, part.shape, strict=True)):
            if other != axis and own < size:
                missing = [*part.shape[:other], size - own, *part.shape[other + 1 :]]
                part = ops.cat((part, ops.zeros(tuple(missing), part.dtype)), other)
        texts = cache.shape[axis]
        before = [_part(cache, axis, 0, slot)] if slot else []
        after = [_part(cache, axis, slot + 1, texts)] if slot + 1 < texts else []
        return ops.cat((*before, part, *after), axis) if before or after else part


def _part(tensor: Any, axis: int, start: int, end: int) -> Any:
    return tensor[tuple([slice(None)] * axis + [slice(start, end)])]
