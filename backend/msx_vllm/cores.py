"""Cores of vLLM's processes where the processor computes: each worker of a model has its own, and each of its ranks."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msx_core.cgroup import cores_by_quota

BIND, THREADS = "VLLM_CPU_OMP_THREADS_BIND", "OMP_NUM_THREADS"
UNBOUND = "nobind"
CPUS = Path("/sys/devices/system/cpu")


class WorkerShare(NamedTuple):
    """The worker at this `place` of so many `workers`, with `ranks` processes that compute. `on_host`: the processes of
    all models, as far as they are known."""

    place: int
    workers: int
    ranks: int
    on_host: int = 0

    @property
    def own_parts(self) -> int:
        """Processes of its model."""
        return self.workers * self.ranks

    @property
    def parts(self) -> int:
        """Processes that share the processor and its memory: also those of other models, and of workers beyond
        `workers`."""
        return max(self.own_parts, self.on_host)


def thread_binding(share: WorkerShare, env: Mapping[str, str]) -> dict[str, str]:
    """Variables that bind the threads of each rank to cores that no other rank of the model has.

    Unbound are those that share cores, because there are fewer than ranks, or other models, or because a quota of the
    cgroup limits processor time and not cores: other containers may be bound to the same ones. vLLM binds the only rank
    of a machine by itself, and the operator says it by the same variable.
    """
    if BIND in env:
        return {}
    if (quota := cores_by_quota()) is not None:
        return {BIND: UNBOUND, THREADS: str(max(quota // share.parts, 1))}
    if share.parts == 1:
        return {}
    cores = physical_cores(_usable(), CPUS)
    size = len(cores) // share.parts
    if not size or share.parts > share.own_parts:
        return {BIND: UNBOUND, THREADS: str(max(size, 1))}
    first = share.place % share.workers * share.ranks
    return {BIND: "|".join(_cores_of(cores, rank, size) for rank in range(first, first + share.ranks))}


def physical_cores(cores: Sequence[int], folder: Path) -> list[int]:
    """The last hardware thread of each, those of a socket together. Cores of which nothing is known count, too."""
    last = {_place(folder / f"cpu{core}" / "topology") or (-1, core): core for core in sorted(cores)}
    return [core for _, core in sorted(last.items(), key=lambda item: (item[0][0], item[1]))]


def _cores_of(cores: Sequence[int], rank: int, size: int) -> str:
    """As vLLM does it by itself, one core of several is left to the processes that do not compute."""
    own = cores[rank * size : (rank + 1) * size]
    return ",".join(map(str, own[:-1] or own))


def _usable() -> Sequence[int]:
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return range(os.cpu_count() or 1)


def _place(topology: Path) -> tuple[int, int] | None:
    """Socket and core."""
    try:
        return int((topology / "physical_package_id").read_text()), int((topology / "core_id").read_text())
    except (OSError, ValueError):
        return None
