"""The process of a rank: a child of this process, or of the supervisor that outlives it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from msx_frontend.supervision.client import SupervisorClient
from msx_frontend.supervision.spawn import spawn


@dataclass(frozen=True)
class ProcessStart:
    """`inherited` are descriptors, each with the option by which the process finds it. `outputs`: stdout and stderr,
    its own ends and ours. `note`: what is remembered of it where it outlives this process."""

    command: Sequence[str]
    inherited: Sequence[tuple[str, int]]
    stdout: tuple[int, int]
    stderr: tuple[int, int]
    env: Mapping[str, str]
    work_dir: Path
    note: Mapping[str, Any]


class WorkerProcess(Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def reaped(self) -> bool:
        """Its number may be another process's."""

    def reap(self) -> int:
        """Once it has ended: its exit code, or the number of the signal, negative."""


class ProcessStarter(Protocol):
    """Starts the processes of ranks."""

    @property
    def parent(self) -> int:
        """Pid of the process together with which they end."""

    def start(self, start: ProcessStart) -> WorkerProcess:
        """Raises OSError."""


class OwnProcess:
    """A child of this process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    @property
    def reaped(self) -> bool:
        return self._process.returncode is not None

    def reap(self) -> int:
        return self._process.wait()


class OwnProcesses:
    """Workers end together with this process."""

    @property
    def parent(self) -> int:
        return os.getpid()

    def start(self, start: ProcessStart) -> OwnProcess:
        stdout, stderr = start.stdout[0], start.stderr[0]
        return OwnProcess(spawn(start.command, start.inherited, stdout, stderr, start.env, start.work_dir))


class SupervisedProcess:
    """A child of the supervisor."""

    def __init__(self, pid: int, supervisor: SupervisorClient) -> None:
        self.pid, self._supervisor = pid, supervisor
        self.reaped = False

    def reap(self) -> int:
        self.reaped = True
        return self._supervisor.reap(self.pid)


class SupervisedProcesses:
    """Workers go on when this process crashes, and end together with the supervisor."""

    def __init__(self, supervisor: SupervisorClient) -> None:
        self._supervisor = supervisor

    @property
    def parent(self) -> int:
        return self._supervisor.pid

    def start(self, start: ProcessStart) -> SupervisedProcess:
        outputs = [start.stdout[0], start.stderr[0], start.stdout[1], start.stderr[1]]
        pid = self._supervisor.start(
            start.command, start.inherited, outputs, start.env, str(start.work_dir), dict(start.note)
        )
        return SupervisedProcess(pid, self._supervisor)


OWN_PROCESSES = OwnProcesses()
