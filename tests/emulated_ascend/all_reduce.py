"""The sum over the ranks of a group, rounded as a sum in 16 bits is.

How HCCL adds depends on the size of a message, on the number of NPUs and on their links; it is not known for any call,
and with HCCL_DETERMINISTIC=false may change from call to call. The emulation takes the least exact of the likely ways:
each addition is rounded, the order differs from place to place, and for small messages from rank to rank. What is near
to a CPU's result in spite of that does not hang on the order.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from msx_sdk.mindspore import collectives
from tests.emulated_ascend.host import Floats, floats, tensor
from tests.emulated_ascend.operator import HALF, Operator

SMALL = 1024
"""Bytes; a choice, so that tests meet both orders: steps of single tokens are small here, prompts are not."""


class AllReduce(Operator):
    def __init__(self, op: str = "sum", group: str = "hccl_world_group") -> None:
        self.op, self.group = op, group

    def compute(self, x: Any) -> Tensor:
        """-> of x's shape"""
        self.constant(op="sum")
        self.tensor("x", x, (*HALF, ms.float32), 2)
        self.require(x.is_contiguous(), "x", x, "HCCL takes one piece of memory: it must be contiguous")
        known = collectives.is_group(self.group)
        self.require(known, "group", self.group, "it must be a group that init_parallel has made")
        ranks = collectives.members(self.group)
        if len(ranks) == 1 or not x.size:
            return tensor(floats(x), x.dtype)
        own, parts = ranks.index(_rank()), _gathered(floats(x), self.group, len(ranks))
        small = x.size * x.itemsize <= SMALL
        return tensor(one_shot(parts, own, x.dtype) if small else ring(parts, x.dtype), x.dtype)


def one_shot(parts: list[Floats], own: int, dtype: Any) -> Floats:
    """Each rank reads all parts, and adds them up beginning with its own."""
    return added([*parts[own:], *parts[:own]], dtype)


def ring(parts: list[Floats], dtype: Any) -> Floats:
    """The sum of each piece goes round, each beginning at another rank; all ranks get the same."""
    pieces = [np.array_split(part.ravel(), len(parts)) for part in parts]
    sums = [
        added([pieces[(place + hop) % len(parts)][place] for hop in range(len(parts))], dtype)
        for place in range(len(parts))
    ]
    return np.concatenate(sums).reshape(parts[0].shape)


def added(parts: list[Floats], dtype: Any) -> Floats:
    """One after the other; each sum is rounded."""
    total = parts[0]
    for part in parts[1:]:
        total = floats(tensor(total + part, dtype))
    return total


def _rank() -> int:
    import mindspore.mint.distributed as dist

    return int(dist.get_rank())


def _gathered(own: Floats, group: str, ranks: int) -> list[Floats]:
    """As float32, which holds 16 bits exactly; the cell around the operator counts the collective."""
    import mindspore.mint.distributed as dist

    parts = [Tensor(np.zeros_like(own)) for _ in range(ranks)]
    dist.all_gather(parts, Tensor(own), group=group)
    return [part.asnumpy() for part in parts]
