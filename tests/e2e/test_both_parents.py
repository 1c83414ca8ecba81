"""The life of a server as an operator sees it: the same with a supervisor, which is usual, and without one."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.server import (
    FREE_PORTS,
    RunningServer,
    new_store,
    pack_service,
    run_server,
    server_environment,
    wait_until,
)
from tests.e2e.test_command_line import Terminal
from tests.e2e.test_lifecycle import SlowRequest, readiness
from tests.frontend.cli.test_first_process import NAMESPACE
from tests.processes import alive, children_of, command_of

pytestmark = pytest.mark.e2e

CLI = (sys.executable, "-m", "msx_frontend.cli.main")
IN_A_TERMINAL = (
    sys.executable,
    "-c",
    "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))",
)
"""Beginning of a command whose stdin is the keyboard."""
WITHOUT_HANGUP = ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")
CTRL_C = b"\x03"


@pytest.fixture(params=["true", "false"])
def supervisor(request: pytest.FixtureRequest) -> str:
    """Line of config.properties."""
    return f"supervisor={request.param}\n"


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Terminal]:
    pack_service("echo", tmp_path)
    with contextlib.closing(Terminal(tmp_path)) as opened:
        yield opened


class Shown:
    """A server that was started by what stands before its command."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, info: dict[str, int | str]) -> None:
        self.process, self.log, self.info = process, log, info
        self.server = psutil.Process(int(info["pid"]))
        self.all = [self.server, *children_of(self.server, recursive=True)]

    def answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.post(f"{self.info['inference']}/predictions/echo", content=b"x").text == "x"
        return False

    def type(self, keys: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(keys)
        self.process.stdin.flush()

    def wait_gone(self) -> None:
        wait_until(lambda: not alive(self.all), "nothing is left", self.log.read_text)


@contextmanager
def started(folder: Path, properties: str, before: Sequence[str], *flags: str) -> Iterator[Shown]:
    """`msx-serve FLAGS`, ready, with the model echo. Its state is `folder/.msx`."""
    pack_service("echo", folder)
    (folder / "config.properties").write_text(FREE_PORTS + properties)
    command, file = [*before, *CLI, *flags, "--models", "echo.mar", "--dt"], folder / ".msx" / "server.json"
    with (log := folder / "server.log").open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=server_environment(folder), stdin=subprocess.PIPE, stdout=output, stderr=output
        )
    try:
        wait_until(file.exists, "it answers", log.read_text)
        info = json.loads(file.read_text())
        wait_until(lambda: httpx.get(f"{info['inference']}/readyz").status_code == 200, "it is ready", log.read_text)
        if "unshare" in before:  # whose child it is: its own numbers are those of its namespace
            (first,) = children_of(process.pid)
            info["pid"] = first.pid
        yield Shown(process, log, info)
    finally:
        process.kill()
        process.communicate()


def test_a_life_in_the_foreground(tmp_path: Path, supervisor: str) -> None:
    pack_service("slow_sync_blocking", new_store(tmp_path), model="slow")
    with run_server(tmp_path, "--models", "slow.mar", properties=supervisor, fork=False) as server:
        assert server.info["pid"] == server.process.pid
        (worker,) = server.worker_pids("slow")
        server.kill_worker(worker, "slow")
        if "true" in supervisor:  # else the kernel pauses it, but for one whose shell has gone
            _pause(server)
        running = SlowRequest(server, tmp_path / "running")
        running.wait_started()
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: readiness(server) == 503, "the first one has come")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
        assert running.status() == 503
    assert server.log_lines()[-1]["message"] == "stopped"
    assert "Traceback" not in server.log.read_text()


def test_a_command_that_stops_all_processes_of_a_name(tmp_path: Path, supervisor: str) -> None:
    """`killall`, say: that is one order, and running requests are answered."""
    pack_service("slow", new_store(tmp_path))
    with run_server(tmp_path, "--models", "slow.mar", properties=supervisor, fork=False) as server:
        running = SlowRequest(server, tmp_path / "running")
        running.wait_started()
        for pid in {server.info["pid"], server.info["frontend"]}:
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda: server.log.read_text().count("shutting down") == 1, "it stops")
        assert readiness(server) == 503
        running.let_go()
        assert running.status() == 200
        assert server.process.wait(60) == 0


def _pause(server: RunningServer) -> None:
    """Ctrl-Z and `fg` of a shell."""
    pair = [psutil.Process(server.info[name]) for name in ("pid", "frontend")]
    server.process.send_signal(signal.SIGTSTP)
    wait_until(lambda: [one.status() for one in pair] == [psutil.STATUS_STOPPED] * 2, "it pauses")
    server.process.send_signal(signal.SIGCONT)
    assert server.inference.get("/livez").status_code == 200


def test_ctrl_c_in_a_terminal(tmp_path: Path, supervisor: str) -> None:
    with started(tmp_path, supervisor, IN_A_TERMINAL, "--foreground") as one:
        assert one.answers()
        one.type(CTRL_C)
        assert one.process.wait(60) == 0
        one.wait_gone()
    said = one.log.read_text()
    assert re.findall(r"^Model server started \(pid (\d+)\)\.$", said, re.MULTILINE) == [str(one.server.pid)]
    assert said.rstrip().endswith("stopped")
    assert "Traceback" not in said


def test_a_terminal_that_is_closed(tmp_path: Path, supervisor: str) -> None:
    with started(tmp_path, supervisor, IN_A_TERMINAL, "--foreground") as one:
        one.process.kill()
        one.wait_gone()


def test_a_server_that_a_closed_terminal_is_not_to_end(tmp_path: Path, supervisor: str) -> None:
    """As after `nohup`: it goes on, and a crash afterwards is one."""
    with started(tmp_path, supervisor, WITHOUT_HANGUP, "--foreground") as one:
        one.server.send_signal(signal.SIGHUP)
        assert one.answers()
        if "true" in supervisor:
            psutil.Process(int(one.info["frontend"])).kill()
            wait_until(one.answers, "another frontend answers", one.log.read_text)
        one.server.terminate()
        assert one.process.wait(60) == 0
        one.wait_gone()


def test_a_life_in_the_background(typed: Terminal, supervisor: str) -> None:
    (typed.folder / "config.properties").write_text(FREE_PORTS + supervisor)
    pid_file = typed.folder / "temp" / ".model_server.pid"
    first = _start(typed)
    assert ("msx_frontend.cli.main" in command_of(first[1])) == ("true" in supervisor)  # a frontend, else the worker
    assert pid_file.read_text() == str(first[0].pid)
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    wait_until(lambda: not alive(first), "nothing is left")
    assert typed.serve("--status").code == 1
    second = _start(typed)
    stopped = typed.serve("--stop")
    assert (stopped.code, stopped.out, stopped.err) == (0, "MSX has stopped.\n", "")
    wait_until(lambda: not alive(second), "nothing is left")
    assert not pid_file.exists()


def _start(typed: Terminal) -> list[psutil.Process]:
    """Its process, and all that it has started."""
    said = typed.serve("--start", "--wait", "--models", "echo.mar", "--dt")
    assert (said.code, said.err) == (0, "")
    assert f"(pid {said.pid})" in typed.serve("--status").out
    server = psutil.Process(said.pid)
    return [server, *children_of(server, recursive=True)]


@pytest.mark.parametrize("how", [("--foreground",), ("--start",), ("--start", "--wait")])
def test_starts_that_fail(typed: Terminal, supervisor: str, how: tuple[str, ...]) -> None:
    """Each says why, once, and ends with 1. Nobody holds what it writes to when it has."""
    tmp_path = typed.folder
    (tmp_path / "file").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        for given, reason in (
            (f"metrics_address={address}", address.partition("//")[2]),
            ("job_queue_size=some", "job_queue_size"),
            ("state_dir=file/state", "file/state"),
            ("log_config=absent.yaml", "absent.yaml"),
        ):
            (tmp_path / "config.properties").write_text(f"{FREE_PORTS}{supervisor}{given}\n")
            said = typed.serve(*how, "--dt")
            assert said.code == 1, said
            assert reason in said.err
            assert len([line for line in said.err.splitlines() if reason in line]) == 1, said
            assert "Traceback" not in said.out + said.err


@pytest.mark.skipif(NAMESPACE is None, reason="this user cannot make a pid namespace")
def test_process_1_of_a_container(tmp_path: Path, supervisor: str) -> None:
    """One small parent, which reaps orphans."""
    with started(tmp_path, supervisor, NAMESPACE or (), "--start") as one:
        small, answers, *workers = map(command_of, one.all)
        assert ("msx_frontend.cli.first_process" in small) == ("false" in supervisor)
        assert "msx_frontend.cli.main" in answers
        assert ["msx_backend.worker" in worker for worker in workers] == [True]
        enter = [shutil.which("nsenter") or "nsenter", "--target", str(one.server.pid), "--pid", "--mount"]
        subprocess.run([*enter, "sh", "-c", "(sleep 0.1 &)"], check=True)
        wait_until(lambda: children_of(one.server, recursive=True) == one.all[1:], "the orphan is reaped")
        one.server.terminate()
        assert one.process.wait(60) == 0
        one.wait_gone()
    assert "shutting down" in one.log.read_text()


@pytest.mark.skipif(NAMESPACE is None, reason="this user cannot make a pid namespace")
def test_a_start_of_process_1_that_fails(tmp_path: Path, supervisor: str) -> None:
    (tmp_path / "config.properties").write_text(f"{FREE_PORTS}{supervisor}metrics_address=http://192.0.2.1:1\n")
    command = [*(NAMESPACE or ()), *CLI, "--start", "--dt"]
    done = subprocess.run(
        command, cwd=tmp_path, env=server_environment(tmp_path), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.count("192.0.2.1:1") == 1
