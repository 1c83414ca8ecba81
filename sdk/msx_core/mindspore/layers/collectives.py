"""Collectives of the tensor-parallel group as cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from mindspore import nn, ops

from msx_core.mindspore import collectives
from msx_core.mindspore.parallel import Parallel


class CollectiveCell(nn.Cell):  # type: ignore[misc]
    """Graphs inline `construct`, so that `__call__` counts eager calls only; `counted` counts those in graphs."""

    kind = ""

    def __init__(self, parallel: Parallel) -> None:
        super().__init__()
        self.size = parallel.tp_size
        self.group = parallel.tp_group

    def __call__(self, *inputs: Any) -> Any:
        if self.size > 1:
            collectives.count(self.kind, self.group)
        return super().__call__(*inputs)


class AllReduce(CollectiveCell):
    """The sum over the ranks of the tensor-parallel group. Floats only."""

    kind = "all_reduce"

    def __init__(self, parallel: Parallel) -> None:
        super().__init__(parallel)
        if self.size > 1:
            self.reduce = ops.AllReduce(group=self.group)

    def construct(self, x: Any) -> Any:
        if self.size > 1:
            x = self.reduce(x)
        return x


class AllGather(CollectiveCell):
    """Joins the ranks' tensors, of the same shape, along the last axis. Floats only."""

    kind = "all_gather"

    def __init__(self, parallel: Parallel) -> None:
        super().__init__(parallel)
        self.index = parallel.tp_rank
        # MCCL gathers in the group of all ranks only; elsewhere a sum of what is padded with zeros does the same.
        self.native = parallel.target != "CPU" or parallel.tp_group == parallel.world_group
        if self.size > 1:
            self.gather = ops.AllGather(group=self.group) if self.native else ops.AllReduce(group=self.group)
        self.join, self.reshape, self.transpose = ops.Concat(-1), ops.Reshape(), ops.Transpose()

    def construct(self, x: Any) -> Any:
        if self.size > 1:
            if self.native:
                x = self.side_by_side(self.gather(x), x.shape)
            else:
                x = self.gather(self.join(self.padded(x)))
        return x

    def side_by_side(self, x: Any, shape: Any) -> Any:
        """Join gathered parts, which lie below each other: one kernel moves them. -> [*shape[:-1], size * shape[-1]]"""
        x = self.transpose(self.reshape(x, (self.size, -1, shape[-1])), (1, 0, 2))
        return self.reshape(x, (-1, self.size * shape[-1]) if len(shape) == 2 else (*shape[:-1], self.size * shape[-1]))

    def padded(self, x: Any) -> Any:
        zeros = ops.zeros_like(x)
        parts: Any = ()
        for rank in range(self.size):
            parts = (*parts, x if rank == self.index else zeros)
        return parts


def counted(function: Callable[..., Any], cell: Any) -> Callable[..., Any]:
    """A function that runs `cell` in a graph, such as `ms.jit(cell.construct)`, counting the cell's collectives.

    Nothing of a graph is seen from Python: every collective inside is taken to run once a call.
    """
    found: Counter[tuple[str, str]] = Counter()
    for _, inner in cell.cells_and_names():
        if isinstance(inner, CollectiveCell) and inner is not cell:
            found[inner.kind, inner.group] += 1
    return collectives.counting(function, found)
