"""The end of a session with all that it has started."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from msx_frontend.supervision import session as module
from msx_frontend.supervision.children import Child, Children
from msx_frontend.supervision.session import end_sessions, processes_of

MAKES = """
import sys, time
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=1 << 20)
command = f"/proc/{resource_tracker._resource_tracker._pid}/cmdline"
while ";".join(["main", "main("]) not in open(command).read():  # it is a copy of this process at first
    time.sleep(0.001)
print(memory.name, flush=True)
time.sleep(600)
"""
HOLDS = """
import subprocess, sys, time
stays = "import time; 'from multiprocessing.resource_tracker import main'; print(flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", stays], stdout=subprocess.PIPE, process_group={group})
child.stdout.read(1)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give trackers the time that they need on a busy machine."""
    monkeypatch.setattr(module, "PATIENCE", 60.0)


def started(program: str) -> tuple[subprocess.Popen[str], str]:
    """One in a session of its own, and what it says."""
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    with process.stdout as told:
        return process, told.readline().strip()


def test_what_its_processes_share_is_removed_by_python_itself() -> None:
    process, name = started(MAKES)
    block = Path("/dev/shm", name)
    assert block.exists()
    assert len(processes_of(process.pid)) == 2
    end_sessions(process.pid)
    assert not block.exists()
    assert process.wait() == -9


def end_by_supervisor(*processes: subprocess.Popen[str]) -> None:
    children, pairs = Children(), [socket.socketpair() for _ in processes]
    for process, (line, _) in zip(processes, pairs, strict=True):
        children.put(Child(process, {}, "", line, ()))
    assert children.end_waiting() == len(processes)
    assert [process.returncode for process in processes] == [-9] * len(processes)
    for _, other in pairs:
        other.close()


def test_the_supervisor_ends_a_worker_so() -> None:
    process, name = started(MAKES)
    end_by_supervisor(process)
    assert not Path("/dev/shm", name).exists()


def test_the_supervisor_waits_for_all_trackers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers nobody meanwhile, and a server has many ranks."""
    now = iter(range(1000))
    monkeypatch.setattr(module, "PATIENCE", 2)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(now), sleep=lambda seconds: None))
    end_by_supervisor(*(started(HOLDS.format(group=None))[0] for _ in range(3)))
    assert next(now) == 3


@pytest.mark.parametrize("group", [None, 0])
def test_one_that_only_looks_like_a_tracker_ends_too(group: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a process group of its own."""
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    process, other = started(HOLDS.format(group=group))
    assert int(other) in processes_of(process.pid)
    ended = os.pidfd_open(int(other))
    end_sessions(process.pid)
    assert process.wait() == -9
    assert select.select([ended], [], [], 60)[0]
    os.close(ended)


def test_a_session_without_a_list_of_processes_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not Linux, or a /proc that shows no others."""
    monkeypatch.setattr(module, "PROC", tmp_path / "none")
    process, name = started(MAKES)
    end_sessions(process.pid)
    assert process.wait() == -9
    Path("/dev/shm", name).unlink(missing_ok=True)  # its tracker was killed with it
