"""How ranks find each other without a scheduler process. Code that uses MindSpore's private functions, or differs
between devices, is here."""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from msx_core.errors import HandlerLoadError
from msx_core.failures import summary

_stores: list[Any] = []
"""Stores are kept until the process ends: MindSpore sometimes crashes when rank 0's store is closed while another rank
uses it."""


@dataclass(frozen=True)
class Rendezvous:
    """Address and members of the group. `timeout` in s; `layout` is this rank's view of how the model is divided."""

    rank: int
    world_size: int
    host: str
    port: int
    timeout: int
    layout: str

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port} (MASTER_ADDR, MASTER_PORT)"


def meet(meeting: Rendezvous, target: str) -> str:
    """Returns the name of the group of all ranks. Raises HandlerLoadError."""
    import mindspore.mint.distributed as dist

    store = _open_store(dist, meeting)
    _compare_layouts(store, meeting)
    with _saying(f"rank {meeting.rank}: the collectives of {meeting.world_size} ranks do not start"):
        (_start_mccl if target == "CPU" else _start_native)(dist, meeting, store)
    from mindspore.communication import GlobalComm

    name: str = GlobalComm.WORLD_COMM_GROUP
    return name


def create_group(name: str, ranks: Sequence[int]) -> None:
    """Only the ranks that are in the group may call it."""
    from mindspore import communication

    communication.create_group(name, list(ranks))


def warm_up(group: str) -> None:
    """Runs a first collective, which sets up the connections in about 3 s, before any client waits."""
    import mindspore as ms
    import numpy as np

    ms.ops.AllReduce(group=group)(ms.Tensor(np.zeros(1, np.float32))).asnumpy()


def _open_store(dist: Any, meeting: Rendezvous) -> Any:
    leads = meeting.rank == 0
    verb = "cannot listen on" if leads else "cannot reach rank 0 at"
    with _saying(f"rank {meeting.rank} {verb} {meeting.place} within {meeting.timeout} s"):
        store = dist.TCPStore(
            host_name=socket.gethostbyname(meeting.host),
            port=meeting.port,
            world_size=meeting.world_size,
            is_master=leads,
            timeout=timedelta(seconds=meeting.timeout),
            wait_for_workers=False,
        )
    _stores.append(store)
    return store


def _compare_layouts(store: Any, meeting: Rendezvous) -> None:
    """Every rank reports to rank 0, since MindSpore itself would wait ten minutes for a missing rank."""
    store.set(_key(meeting.rank), meeting.layout)
    others = range(1, meeting.world_size) if meeting.rank == 0 else [0]
    for other in others:
        with _saying(f"rank {meeting.rank}: rank {other} did not come to {meeting.place} within {meeting.timeout} s"):
            layout: str = store.get(_key(other)).decode()
        if layout != meeting.layout:
            raise HandlerLoadError(
                f"rank {meeting.rank} holds a part of {meeting.layout}, but rank {other} of {layout}: "
                "all ranks need the same model-config.yaml"
            )


def _key(rank: int) -> str:
    return f"msx-rank-{rank}"


def _start_mccl(dist: Any, meeting: Rendezvous, store: Any) -> None:
    """The public init_process_group accepts only hccl, so on a CPU this calls what it calls."""
    from mindspore.communication.management import _init_with_store
    from mindspore.mint.distributed import distributed

    _init_with_store(
        backend="mccl",
        timeout=timedelta(seconds=meeting.timeout),
        world_size=meeting.world_size,
        rank=meeting.rank,
        store=store,
    )
    # send() and isend() have bound the name of the device's group as their default when they were imported.
    distributed._GROUP_RANK_CACHE["hccl_world_group"] = meeting.rank


def _start_native(dist: Any, meeting: Rendezvous, store: Any) -> None:
    """Start the device's own backend, the default of MindSpore."""
    dist.init_process_group(
        store=store,
        rank=meeting.rank,
        world_size=meeting.world_size,
        timeout=timedelta(seconds=meeting.timeout),
    )


@contextlib.contextmanager
def _saying(what: str) -> Iterator[None]:
    """The first line of a MindSpore error, without the C++ call stack."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        first = summary(error).partition(" ----")[0]
        raise HandlerLoadError(f"{what}: {first}") from error
