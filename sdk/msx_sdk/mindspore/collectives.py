"""Collectives between ranks that work on CPU and Ascend alike, outside of graphs; each one is counted.

Inside graphs use the cells `AllReduce` and `AllGather` of `msx_sdk.mindspore.layers`. A group is a name of
`Parallel`: `tp_group`, `pp_group` or `world_group`; a group of one rank needs no communication.
"""

from msx_core.mindspore.collectives import (
    Reduction,
    all_gather,
    all_reduce,
    broadcast,
    count,
    counting,
    counts,
    disagreement,
    is_group,
    members,
    recv,
    register,
    send,
)

__all__ = [
    "Reduction",
    "all_gather",
    "all_reduce",
    "broadcast",
    "count",
    "counting",
    "counts",
    "disagreement",
    "is_group",
    "members",
    "recv",
    "register",
    "send",
]
