"""MindIR files with collectives, one a rank."""

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from msx_sdk import Context

GROUP = "2-7177"
"""As MindSpore calls the groups that it makes."""


class Shard(nn.Cell):  # type: ignore[misc]
    """Some rows of x [4, 8] times w, added up over the ranks."""

    def __init__(self, rank: int, ranks: int) -> None:
        super().__init__()
        self.first, self.last = rank * 8 // ranks, (rank + 1) * 8 // ranks
        self.weight = Parameter(Tensor(np.full((self.last - self.first, 2), 0.5, np.float32)))
        self.reduce = ops.AllReduce(group=GROUP)

    def construct(self, x: Any) -> Any:
        return ops.neg(self.reduce(ops.matmul(x[:, self.first : self.last], self.weight)))


class First(nn.Cell):  # type: ignore[misc]
    """Gives x to the next stage."""

    def __init__(self) -> None:
        super().__init__()
        self.hand_on = ops.AllReduce()

    def construct(self, x: Any) -> Any:
        return self.hand_on(x + 1)


class Last(nn.Cell):  # type: ignore[misc]
    """Has no inputs: it takes what the stage before gives."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = Parameter(Tensor(np.zeros((4, 8), np.float32)))
        self.take = ops.AllReduce()

    def construct(self) -> Any:
        return ops.reduce_sum(self.take(self.nothing * 1), 1)


def export_tp(context: Context) -> Path:
    return _exported(context, "tp", Shard(context.rank, context.world_size), _x())


def export_stage(context: Context) -> Path:
    return _exported(context, "stage", First(), _x()) if context.rank == 0 else _exported(context, "stage", Last())


def _x() -> Any:
    return Tensor(np.ones((4, 8), np.float32))


def _exported(context: Context, name: str, cell: Any, *inputs: Any) -> Path:
    file = context.model_dir / f"{name}{context.rank}"
    ms.export(cell, *inputs, file_name=str(file), file_format="MINDIR")
    return file.with_suffix(".mindir")
