"""Values from rank to rank, outside of graphs: as bytes, so that all types of arrays have a form, and a rank need not
know shapes before."""

from typing import Any

from msx_core.mindspore import collectives
from msx_core.packed import pack, unpack


class RankMessages:
    """`group` is that of all ranks."""

    def __init__(self, group: str) -> None:
        self._group = group

    def send(self, value: Any, rank: int) -> None:
        import mindspore as ms
        import numpy as np

        data = pack(value)
        collectives.send(ms.Tensor(np.array([len(data)], np.int64)), rank, self._group)
        collectives.send(ms.Tensor(np.frombuffer(data, np.uint8).copy()), rank, self._group)

    def receive(self, rank: int) -> Any:
        import mindspore as ms

        size = int(collectives.recv((1,), ms.int64, rank, self._group).asnumpy()[0])
        return unpack(collectives.recv((size,), ms.uint8, rank, self._group).asnumpy().tobytes())
