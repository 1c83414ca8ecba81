"""Rights that a process gives up before it becomes the worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from msx_frontend.workers import confine
from tests.other_user import UID, needs_root, others_python

TELL = """
import json, os, resource
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "uids": os.getresuid(), "gids": os.getresgid(), "groups": os.getgroups(), "umask": os.umask(0),
    "limit": resource.getrlimit(resource.RLIMIT_NOFILE), "no_new_privileges": int(status["NoNewPrivs"]),
    "pid": os.getpid(), "cores": sorted(os.sched_getaffinity(0)),
}))
"""


def run(*options: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", confine.__file__, *options, "--", python, "-c", TELL]
    return subprocess.run(command, capture_output=True, text=True, cwd="/")


def told(*options: str, python: str = sys.executable) -> dict[str, Any]:
    done = run(*options, python=python)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_limits_and_no_new_privileges() -> None:
    found = told("--limit=nofile=200", "--limit=core=0", "--no-new-privileges")
    assert (found["limit"], found["no_new_privileges"]) == ([200, 200], 1)


def test_cores() -> None:
    *_, last = sorted(os.sched_getaffinity(0))
    assert told(f"--cores={last}")["cores"] == [last]


def test_cores_that_are_not_there_leave_it_unbound() -> None:
    done = run("--cores=4000")
    assert done.stderr == "bindCores: cores [4000] cannot be used: Invalid argument\n"
    assert json.loads(done.stdout)["cores"] == sorted(os.sched_getaffinity(0))


def test_nothing_that_was_not_asked_for() -> None:
    assert told("--limit=core=0")["no_new_privileges"] == 0


@needs_root
def test_another_user() -> None:
    found = told(f"--user={UID}", f"--group={UID + 1}", "--groups=12,13", python=others_python()[0])
    assert (found["uids"], found["gids"], found["groups"]) == ([UID] * 3, [UID + 1] * 3, [12, 13])
    assert found["umask"] == 0o077


@needs_root
def test_a_program_that_the_user_cannot_run(tmp_path: Path) -> None:
    (program := tmp_path / "p").touch(mode=0o700)
    done = run(f"--user={UID}", f"--group={UID}", python=str(program))
    assert (done.returncode, done.stderr) == (1, f"{program} cannot be run as user {UID}: Permission denied\n")


def test_what_the_system_refuses() -> None:
    done = run(f"--limit=nofile={(1 << 63) - 1}")
    assert done.returncode == 1
    assert done.stderr.startswith("worker_limits: nofile=9223372036854775807 cannot be set: ")
