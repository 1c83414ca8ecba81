"""Collectives between ranks that work on CPU and Ascend alike, outside of graphs; each one is counted.

Inside graphs use the cells `AllReduce` and `AllGather` of `msx_core.mindspore.layers`. A group is a name of
`Parallel`: `tp_group`, `pp_group` or `world_group`; a group of one rank needs no communication.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

Reduction = Literal["sum", "max", "min"]

_members: dict[str, tuple[int, ...]] = {}
_counts: Counter[str] = Counter()


def register(group: str, ranks: Sequence[int]) -> None:
    """Registers the ranks of a group; `init_parallel` does it for its own groups."""
    _members[group] = tuple(ranks)


def members(group: str) -> tuple[int, ...]:
    """Raises ValueError for a group that was not registered."""
    if group not in _members:
        known = ", ".join(_members) or "none: call init_parallel(context) first"
        raise ValueError(f"this rank does not know the group {group!r} (known: {known})")
    return _members[group]


def is_group(group: str) -> bool:
    return group in _members


def counts() -> dict[str, int]:
    """How often this process has taken part in what, since its start: `{"all_reduce[0,1]": 12}`.

    The ranks in brackets are those that must have counted the same; both ends of a message count it as
    `send[from,to]`. `disagreement` compares.
    """
    return dict(_counts)


def disagreement(reports: Mapping[int, Mapping[str, int]]) -> str | None:
    """The first difference between the counts of ranks that must agree, as a sentence; None if they agree."""
    for key in sorted({key for report in reports.values() for key in report}):
        ranks = [int(rank) for rank in re.findall(r"\d+", key.partition("[")[2])]
        seen = {rank: reports[rank].get(key, 0) for rank in ranks if rank in reports}
        if len(set(seen.values())) > 1:
            told = ", ".join(f"rank {rank} {number}" for rank, number in seen.items())
            return f"the ranks do not agree on the number of {key}: {told}"
    return None


def count(what: str, group: str, times: int = 1) -> None:
    ranks = members(group)
    if len(ranks) > 1:
        _counts[_key(what, ranks)] += times


def counting(function: Callable[..., Any], times: Mapping[tuple[str, str], int]) -> Callable[..., Any]:
    """`function`, which counts these collectives by kind and group before each call."""

    def run(*inputs: Any) -> Any:
        for (kind, group), number in times.items():
            count(kind, group, number)
        return function(*inputs)

    return run


def all_reduce(tensor: Any, group: str, op: Reduction = "sum") -> Any:
    """The sum (maximum, minimum) over the ranks of the group, as a new tensor of the same shape and type."""
    if len(members(group)) == 1:
        return tensor
    if op != "sum" or not _is_float(tensor):  # MCCL reduces floats, and by sums only
        return functools.reduce(_local(op), _gather(tensor, group))
    count("all_reduce", group)
    return _reducer(group)(tensor)


def all_gather(tensor: Any, group: str, axis: int = 0) -> Any:
    """The tensors of all ranks of the group, which have the same shape, joined along `axis` in order of rank."""
    if len(members(group)) == 1:
        return tensor
    from mindspore import ops

    return ops.concat(_gather(tensor, group), axis)


def broadcast(tensor: Any, source: int, group: str) -> Any:
    """Rank `source`'s tensor; the other ranks give one of the same shape and type, whose values do not matter."""
    if len(members(group)) == 1:
        return tensor
    import mindspore.mint.distributed as dist

    _check_member(source, group)
    count("broadcast", group)
    result = _on_wire(tensor.copy())
    dist.broadcast(result, source, group=group)
    return result.astype(tensor.dtype)


def send(tensor: Any, target: int, group: str) -> None:
    """Sends to a rank (its number in the world) of the group, which receives it by `recv`. On a CPU the message is
    buffered."""
    import mindspore.mint.distributed as dist

    _check_member(target, group)
    if tensor.size:  # an empty message would never arrive
        _counts[_key("send", (dist.get_rank(), target))] += 1
        dist.send(_on_wire(tensor.contiguous()), target, group=group)


def recv(shape: Sequence[int], dtype: Any, source: int, group: str) -> Any:
    """Receives from rank `source`; shape and MindSpore data type must be those of the tensor that was sent."""
    import mindspore as ms
    import mindspore.mint.distributed as dist

    _check_member(source, group)
    result = _on_wire(ms.ops.zeros(tuple(shape), dtype))
    if result.size:
        _counts[_key("send", (source, dist.get_rank()))] += 1
        dist.recv(result, source, group=group)
    return result.astype(dtype)


def _gather(tensor: Any, group: str) -> list[Any]:
    import mindspore.mint.distributed as dist
    from mindspore import ops

    count("all_gather", group)
    wire = _on_wire(tensor.contiguous())
    gathered = [ops.zeros_like(wire) for _ in members(group)]
    dist.all_gather(gathered, wire, group=group)
    return [part.astype(tensor.dtype) for part in gathered]


def _key(what: str, ranks: Sequence[int]) -> str:
    return f"{what}[{','.join(map(str, ranks))}]"


def _check_member(rank: int, group: str) -> None:
    if rank not in members(group):
        raise ValueError(f"rank {rank} is not in group {group!r}, which has the ranks {list(members(group))}")


def _is_float(tensor: Any) -> bool:
    import mindspore as ms

    return tensor.dtype in (ms.float16, ms.float32, ms.bfloat16)


def _on_wire(tensor: Any) -> Any:
    """MCCL cannot send booleans."""
    import mindspore as ms

    return tensor.astype(ms.uint8) if tensor.dtype == ms.bool_ else tensor


@functools.cache
def _reducer(group: str) -> Callable[[Any], Any]:
    from mindspore import ops

    primitive: Callable[[Any], Any] = ops.AllReduce(group=group)
    return primitive


def _local(op: Reduction) -> Callable[[Any, Any], Any]:
    from mindspore import ops

    local: Callable[[Any, Any], Any] = {"sum": ops.add, "max": ops.maximum, "min": ops.minimum}[op]
    return local
