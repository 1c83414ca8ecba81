"""Messages between the stages of a pipeline: tensors of any shape, a failure, or a command."""

import enum
from dataclasses import dataclass
from typing import Any

from msx_core.failures import RequestFailure
from msx_core.mindspore import collectives

HEADER = 64
"""int64 values: kind, more, number of tensors, then data type, number of axes and axes of each."""
_TEXT = 2_000
_DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool_")


class StageMessageKind(enum.IntEnum):
    TENSORS = 0
    FAILED = 1
    YIELD = 2
    END = 3


@dataclass(frozen=True)
class StageMessage:
    """`more`: further micro-batches of the same pass follow."""

    kind: StageMessageKind
    tensors: tuple[Any, ...] = ()
    failure: RequestFailure | None = None
    more: bool = False


@dataclass(frozen=True)
class RankLink:
    """Messages to and from the other ranks of one group."""

    group: str

    def send(self, message: StageMessage, target: int) -> None:
        tensors = (_text_tensor(message.failure),) if message.failure else message.tensors
        collectives.send(self._header(message, tensors), target, self.group)
        for tensor in tensors:
            collectives.send(tensor, target, self.group)

    def receive(self, source: int) -> StageMessage:
        import mindspore as ms

        header = [int(value) for value in collectives.recv((HEADER,), ms.int64, source, self.group).asnumpy()]
        tensors = tuple(collectives.recv(shape, dtype, source, self.group) for dtype, shape in self._described(header))
        kind = StageMessageKind(header[0])
        if header[3]:
            return StageMessage(kind, failure=RequestFailure(header[3], _text_of(tensors)), more=bool(header[1]))
        return StageMessage(kind, tensors, more=bool(header[1]))

    def _header(self, message: StageMessage, tensors: tuple[Any, ...]) -> Any:
        import mindspore as ms
        import numpy as np

        status = message.failure.status if message.failure else 0
        values = [int(message.kind), int(message.more), len(tensors), status]
        for tensor in tensors:
            values += [_known_dtypes().index(tensor.dtype), len(tensor.shape), *tensor.shape]
        return ms.Tensor(np.array(values + [0] * (HEADER - len(values)), np.int64))

    def _described(self, header: list[int]) -> list[tuple[Any, tuple[int, ...]]]:
        described, at = [], 4
        for _ in range(header[2]):
            axes = header[at + 1]
            described.append((_known_dtypes()[header[at]], tuple(header[at + 2 : at + 2 + axes])))
            at += 2 + axes
        return described


def check_sendable(values: tuple[Any, ...]) -> None:
    """Raises TypeError or ValueError for tensors that cannot be sent from stage to stage."""
    import mindspore as ms

    for value in values:
        if not isinstance(value, ms.Tensor) or value.dtype not in _known_dtypes():
            kind = getattr(value, "dtype", type(value).__name__)
            raise TypeError(f"a pipeline stage returns tensors of {', '.join(_DTYPES)}, not {kind}")
    if (size := 4 + sum(2 + len(value.shape) for value in values)) > HEADER:
        raise ValueError(
            f"a pipeline stage returned {len(values)} tensors, whose shapes take {size} of {HEADER} numbers"
        )


def _known_dtypes() -> list[Any]:
    import mindspore as ms

    return [getattr(ms, name) for name in _DTYPES]


def _text_tensor(failure: RequestFailure) -> Any:
    import mindspore as ms
    import numpy as np

    text = failure.message[:_TEXT].encode() or b" "
    return ms.Tensor(np.frombuffer(text, np.uint8).copy())


def _text_of(tensors: tuple[Any, ...]) -> str:
    return bytes(tensors[0].asnumpy()).decode(errors="replace").strip()
