"""What a process has for itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from msx_frontend.workers.own_memory import own_memory

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
