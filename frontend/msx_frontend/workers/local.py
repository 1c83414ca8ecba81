"""The launcher that starts all ranks of a group as processes of this machine."""

import asyncio
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from msx_frontend.workers.group_note import note_of
from msx_frontend.workers.kept_groups import KeptGroups, end_all
from msx_frontend.workers.launcher import GroupSpec
from msx_frontend.workers.local_rank import LocalRank
from msx_frontend.workers.rank_start import ProcessSpec, no_note, start_rank
from msx_frontend.workers.segments.allowance import SegmentAllowance
from msx_frontend.workers.worker_process import OWN_PROCESSES, ProcessStarter

log = logging.getLogger("msx.workers")

HERE = "127.0.0.1"


class LocalLauncher:
    """`folder`: each rank gets its working directory below it. `descriptors`: the soft limit that ranks get, where they
    inherit a higher one. `segments`: how many descriptors of shared memory the server may hold. `starter` makes the
    processes; `kept` has groups of a frontend before this one."""

    def __init__(
        self,
        folder: Path,
        descriptors: int | None = None,
        segments: SegmentAllowance | None = None,
        *,
        starter: ProcessStarter = OWN_PROCESSES,
        kept: KeptGroups | None = None,
    ) -> None:
        self._folder = folder
        self._descriptors = descriptors
        self._segments = segments or SegmentAllowance(0)
        self._starter, self._kept = starter, kept
        self._leaves = False

    def leave(self) -> None:
        """Start nothing more: another frontend follows."""
        self._leaves = True

    async def launch(self, spec: GroupSpec) -> Sequence[LocalRank]:
        """See `Launcher.launch`. The loop runs between the starts of two processes, of which each takes milliseconds.

        The names of folders do not contain that of the model, which may be any text.
        """
        if self._leaves:
            raise OSError("another frontend follows, which starts workers")
        if self._kept is not None and (kept := await self._kept.take(spec)):
            return kept
        name = f"{spec.worker}-{spec.generation}-{os.urandom(3).hex()}"
        meeting = _meeting_point() if spec.meets or len(spec.ranks) > 1 else {}
        started: list[LocalRank] = []
        with ExitStack() as plans:
            try:
                for rank, plan_fds in enumerate(_plan_fds(len(spec.ranks), plans)):
                    process = self._process(spec, rank, f"{name}-r{rank}", meeting)
                    started.append(start_rank(replace(process, plan_fds=plan_fds)))
                    await asyncio.sleep(0)
            except BaseException:
                await end_all(started)
                raise
        _log_grant(spec, started[0])
        return started

    def _process(self, spec: GroupSpec, rank: int, name: str, meeting: Mapping[str, str]) -> ProcessSpec:
        one = spec.ranks[rank]
        return ProcessSpec(
            spec.python,
            env={**one.env, **meeting},
            work_dir=self._folder / name,
            confinement=one.confinement,
            descriptors=self._descriptors,
            segments=spec.segments if rank == 0 else None,
            allowance=self._segments,
            starter=self._starter,
            note=no_note if self._kept is None else partial(note_of, spec, rank, self._folder / name),
        )


def _log_grant(spec: GroupSpec, rank: LocalRank) -> None:
    """Say where the server's descriptors do not suffice for the segments that a stage's worker may have."""
    wanted, offered = spec.segments, rank.segments
    if wanted is None or offered is None or not wanted.size or offered.limits.number >= wanted.number:
        return
    granted = offered.limits.number
    log.log(
        logging.INFO if granted else logging.WARNING,
        "worker %d may have %d segments of shared memory, not %d (sharedSegments), because the server has few "
        "descriptors left for them: its other large values travel in frames, which takes longer. Raise the server's "
        "limit of open files (ulimit -n)",
        spec.worker,
        granted,
        wanted.number,
        extra={"model": spec.load.model_name, "version": spec.load.model_version},
    )


def _plan_fds(ranks: int, stack: ExitStack) -> list[tuple[int, ...]]:
    """Ends of the plan sockets that each rank inherits: rank 0 has one to each of the others."""
    pairs = [_socket_pair(stack) for _ in range(ranks - 1)]
    return [tuple(first.fileno() for first, _ in pairs), *((other.fileno(),) for _, other in pairs)]


def _socket_pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    first, other = socket.socketpair()
    return stack.enter_context(first), stack.enter_context(other)


def _meeting_point() -> dict[str, str]:
    """Where the ranks of one generation meet. The port is fresh: no rank of an earlier generation can answer there."""
    return {"MASTER_ADDR": HERE, "MASTER_PORT": str(free_port(HERE))}


def free_port(address: str) -> int:
    """A port of this address that nobody has now. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])
