from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from msx_protocol import Loaded
from tests.backend.harness import SERVICES, Peer, command, lines_of, load_message, wait_until
from tests.processes import is_alive

PARENT = """
import os, subprocess, sys, time
fds = [int(sys.argv[1]), int(sys.argv[2])]
words = [sys.executable, "-m", "msx_backend.worker", "--data-fd", sys.argv[1], "--control-fd", sys.argv[2]]
child = subprocess.Popen([*words, "--parent", str(os.getpid())], pass_fds=fds, start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_worker_dies_with_its_parent_although_its_sockets_stay_open(tmp_path: Path) -> None:
    peer, mark = Peer(), tmp_path / "mark"
    fds = [peer.worker_data.fileno(), peer.worker_control.fileno()]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *map(str, fds)], pass_fds=fds, stdout=subprocess.PIPE, cwd=tmp_path, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    try:
        peer.send(load_message(SERVICES, "hang.py"))
        assert isinstance(peer.receive_loaded(), Loaded)
        peer.predict(str(mark))
        wait_until(lambda: lines_of(mark))
        parent.kill()
        wait_until(lambda: not is_alive(pid))
    finally:
        parent.kill()
        parent.communicate()
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
        peer.close()


def test_a_worker_whose_parent_ended_before_it_armed_itself_ends(tmp_path: Path) -> None:
    peer = Peer()
    fds = [peer.worker_data.fileno(), peer.worker_control.fileno()]
    not_its_parent = 1 if os.getpid() != 1 else 2
    words = command(peer.worker_data, peer.worker_control, not_its_parent)
    assert subprocess.run(words, pass_fds=fds, cwd=tmp_path, timeout=60).returncode == 1
    peer.close()
