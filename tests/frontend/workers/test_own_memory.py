"""Memory that a process has for itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from msx_frontend.workers.own_memory import own_memory, own_memory_of_all

PROGRAM = """
import mmap, sys
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
sum(mapped[::4096])
held = bytearray(int(sys.argv[2]))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_mapped_files_do_not_count(tmp_path: Path) -> None:
    size = 50 << 20
    (tmp_path / "weights").write_bytes(os.urandom(1 << 20) * 50)
    seen = []
    for held in (0, size):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "weights"), str(held)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            seen.append(own_memory(process.pid))
            process.communicate()
    assert 0 < seen[0] < size
    assert seen[1] - seen[0] > size * 0.9


def test_a_process_that_is_not_there() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert own_memory(process.pid) == 0


PARENT = """
import os, subprocess, sys
held = bytearray(int(sys.argv[1]))
if sys.argv[2] == "fork":
    if not os.fork():
        sys.stdin.read()
        os._exit(0)
elif sys.argv[2] == "start":
    code = "import sys; held = bytearray(int(sys.argv[1])); print('ready', flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code, sys.argv[1]], stdout=subprocess.PIPE)
    child.stdout.readline()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize(("way", "times"), [("alone", 1), ("start", 2), ("fork", 1)])
def test_what_it_has_started_counts_without_what_a_fork_shares(way: str, times: int) -> None:
    size = 64 << 20
    command = [sys.executable, "-c", PARENT, str(size), way]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        taken = own_memory_of_all(process.pid)
        process.communicate()
    assert times * size < taken < (times + 0.7) * size
