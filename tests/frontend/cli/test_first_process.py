"""`msx-serve` as process 1, without a supervisor: in a pid namespace of its own, with a stand-in for the server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def namespace() -> list[str] | None:
    """A command that gives another one a pid namespace: root may, and others where they may make user namespaces."""
    for more in ([], ["--user", "--map-root-user"]):
        command = ["unshare", *more, "--pid", "--fork", "--kill-child", "--mount-proc"]
        if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    return None


NAMESPACE = namespace()
pytestmark = pytest.mark.skipif(NAMESPACE is None, reason="this user cannot make a pid namespace")
SERVER = """
import contextlib, os, signal, sys, time

assert sys.argv[1:3] == ["--foreground", "--script"], sys.argv

def states():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:  # it may end meanwhile
            yield stat.read().rpartition(")")[2].split()[0]

if not os.fork():
    os.fork()  # its parent ends before it: an orphan, which process 1 gets
    os._exit(0)
os.wait()
while len(list(states())) > 2 or "Z" in states():  # process 1 and this one
    time.sleep(0.01)
print("alone", os.getpid() != 1, os.getsid(0) == os.getpid(), flush=True)
"""
ENDS = {
    "exit": "os._exit(3)",
    "clean": "signal.sigwait({signal.SIGTERM}); os._exit(0)",
    "counts": "signal.signal(signal.SIGRTMIN, lambda *_: os._exit(7)); print('ready', flush=True); signal.pause()",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
}


@contextmanager
def container(end: str) -> Iterator[subprocess.Popen[str]]:
    """Its first process is the command; `end` is the end of what stands for the server."""
    block = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})"
    stand_in = f"{block}\n{SERVER}\n{end}"
    first = f"""
import os, sys
from msx_frontend.cli import main
spawn = os.posix_spawn
os.posix_spawn = lambda path, command, *a, **kw: spawn(path, [path, "-c", {stand_in!r}, *command[4:]], *a, **kw)
sys.argv = ["msx-serve", "--script", "start.py"]
main.main()
"""
    process = subprocess.Popen(
        [*(NAMESPACE or []), sys.executable, "-c", first],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize(("end", "code"), [("exit", 3), ("killed", 128 + signal.SIGKILL)])
def test_its_exit_code_is_the_servers_and_orphans_are_reaped(end: str, code: int) -> None:
    with container(ENDS[end]) as process:
        assert said(process) == "alone True True"
        assert process.wait(60) == code


def test_a_signal_reaches_the_server() -> None:
    """The kernel drops what process 1 has no handler for."""
    with container(ENDS["clean"]) as process:
        assert said(process) == "alone True True"
        first = int(subprocess.check_output(["pgrep", "-P", str(process.pid)]))
        os.kill(first, signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_stop_that_is_handed_on_differs_from_one_that_all_processes_get() -> None:
    """`killall` tells process 1 and the server, and a server takes a second order as one not to wait."""
    with container(ENDS["counts"]) as process:
        assert [said(process), said(process)] == ["alone True True", "ready"]
        os.kill(int(subprocess.check_output(["pgrep", "-P", str(process.pid)])), signal.SIGTERM)
        assert process.wait(60) == 7
