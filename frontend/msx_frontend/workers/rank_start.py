"""The start of a rank's process on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msx_frontend.worker_modules import WORKER
from msx_frontend.workers.confinement import FREE, Confinement
from msx_frontend.workers.local_rank import LocalRank
from msx_frontend.workers.local_streams import PipeStream, SocketStream, pipe, segment_socket, socket_pair
from msx_frontend.workers.segments.allowance import SegmentAllowance, SegmentLimits, SegmentSocket
from msx_frontend.workers.worker_process import OWN_PROCESSES, ProcessStart, ProcessStarter

NoteOf = Callable[[SegmentSocket | None], Mapping[str, Any]]
"""Makes the note of a process that outlives this one, from its shared memory."""


def no_note(segments: SegmentSocket | None) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class ProcessSpec:
    """The process of one rank on this machine. `work_dir` is made for it.

    `descriptors` is the soft limit that it gets, where it inherits a higher one; `allowance` what the server has left
    for shared memory, of which `segments` is wanted. `starter` makes the process, with its `note`.
    """

    python: str
    env: Mapping[str, str]
    work_dir: Path
    plan_fds: Sequence[int] = ()
    confinement: Confinement = FREE
    descriptors: int | None = None
    segments: SegmentLimits | None = None
    allowance: SegmentAllowance = field(default_factory=lambda: SegmentAllowance(0))
    starter: ProcessStarter = OWN_PROCESSES
    note: NoteOf = no_note


def start_rank(spec: ProcessSpec) -> LocalRank:
    """Start the process of a rank. Raises OSError when the machine lets no process start; nothing is left then."""
    work_dir, confinement = spec.work_dir, spec.confinement
    env = {**spec.env, **confinement.environment(work_dir)}
    work_dir.mkdir(parents=True)
    with ExitStack() as ours, ExitStack() as theirs:
        ours.callback(shutil.rmtree, work_dir, ignore_errors=True)
        confinement.furnish(work_dir)
        (data, data_fd), (control, control_fd) = socket_pair(ours, theirs), socket_pair(ours, theirs)
        segments = segment_socket(ours, theirs, spec.segments, spec.allowance)
        stdout, stderr = pipe(ours, theirs), pipe(ours, theirs)
        for _, fd in (stdout, stderr):
            confinement.give(fd)
        command = _command(spec.python, spec.starter.parent, spec.descriptors)
        inherited = [("--data-fd", data_fd), ("--control-fd", control_fd), *(("--plan-fd", fd) for fd in spec.plan_fds)]
        if segments is not None:
            inherited.append(("--segments-fd", segments[1]))
        note = spec.note(None if segments is None else segments[0])
        start = ProcessStart(confinement.command(command), inherited, stdout[::-1], stderr[::-1], env, work_dir, note)
        process = spec.starter.start(start)
        ours.pop_all()
    return LocalRank(
        process,
        work_dir,
        data=SocketStream(data),
        control=SocketStream(control),
        stdout=PipeStream(stdout[0]),
        stderr=PipeStream(stderr[0]),
        segments=None if segments is None else segments[0],
        allowance=spec.allowance,
    )


def _command(python: str, parent: int, descriptors: int | None) -> list[str]:
    command = [python, "-m", WORKER, "--parent", str(parent)]
    return command if descriptors is None else [*command, f"--descriptors={descriptors}"]
