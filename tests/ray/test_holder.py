"""The actor that holds a bundle, without Ray."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from msx_ray.driver import holder

CHILD = """
import os
from msx_ray.driver import holder
holder.LOOK, raylet = 0.01, os.getppid()
print(1, flush=True)
holder._follow_parent(raylet)
"""
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {CHILD!r}]); input()"


def test_a_holder_ends_with_the_raylet() -> None:
    """Which leaves it behind when the head is gone for good."""
    raylet = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert raylet.stdin is not None
    assert raylet.stdout is not None
    assert raylet.stdout.readline() == b"1\n"
    raylet.stdin.write(b"\n")
    raylet.stdin.close()
    assert raylet.stdout.read() == b"", "the holder has its standard output until it ends"
    raylet.stdout.close()
    assert raylet.wait() == 0


def test_an_agent_has_the_priority_of_the_raylet() -> None:
    """Not the lower one of a worker of Ray."""
    if os.geteuid() != 0:
        pytest.skip("only root may raise a priority")
    nicer = subprocess.Popen(["sleep", "60"], preexec_fn=lambda: os.nice(15))
    try:
        holder._as_important_as(os.getpid(), nicer.pid)
        assert os.getpriority(os.PRIO_PROCESS, nicer.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    finally:
        nicer.kill()
        nicer.wait()


def test_a_priority_that_may_not_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    holder._as_important_as(os.getpid(), os.getpid())


def test_it_imports_nothing_of_msx() -> None:
    """It travels to nodes that may not have it."""
    command = [sys.executable, "-c", f"import runpy, sys; runpy.run_path({holder.__file__!r}); print(*sys.modules)"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ}).stdout.split()
    assert not [name for name in loaded if name.startswith("msx_")]
