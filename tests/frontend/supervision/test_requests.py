"""A frontend and its supervisor, over a socket, with real processes as workers."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest

from msx_frontend.supervision import client as module
from msx_frontend.supervision.children import Children
from msx_frontend.supervision.client import SupervisorClient, SupervisorError
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.process import InheritedProcess, reap_others
from msx_frontend.supervision.program import Program, is_overwritten, program
from msx_frontend.supervision.requests import SupervisorRequests
from msx_frontend.supervision.supervisor import FrontendSupervisor
from msx_frontend.supervision.wire import Message, close_all, receive, send
from tests.descriptors import open_descriptors

CHILD = """
import socket, sys
data, line = (socket.socket(fileno=int(option.partition("=")[2])) for option in sys.argv[1:])
data.sendall(b"up")
print("printed", flush=True)
_, ends, _, _ = socket.recv_fds(line, 1, 2)
socket.socket(fileno=ends[0]).sendall(b"adopted")
line.recv(1)
"""


class Bench:
    """A supervisor on a thread, without its loop."""

    def __init__(self) -> None:
        self.children, self.sockets, self.kept_for = Children(), KeptSockets(), list[float | None]()
        self.config: str | None = None
        self.running: FrontendProcess | None = None
        self._requests = SupervisorRequests(self.children, self.sockets, self, program())
        self._ends: list[socket.socket] = []
        self.frontend = FrontendProcess.__new__(FrontendProcess)
        self.handed_over_by: tuple[float, list[str]] | None = None
        self.released = 0

    def close(self) -> None:
        self.children.end_all()
        for end in self._ends:
            end.close()

    def serving(self) -> FrontendProcess | None:
        return self.running

    def turn_asked(self, frontend: FrontendProcess) -> None:
        turn: Message = {
            "follows": self.running is not None,
            "kept": self.children.notes(self.frontend),
            "work_dirs": self.children.work_dirs,
            "jobs": [],
        }
        send(self._serving, turn)

    def handed_over(self, frontend: FrontendProcess, limit: float, jobs: list[str]) -> socket.socket:
        self.handed_over_by = limit, jobs
        near, far = socket.socketpair()
        self._ends.append(near)
        near.sendall(b"line")
        return far

    def workers_released(self) -> None:
        self.released += 1

    def frontend_started(self, frontend: FrontendProcess, keep_groups: float | None, config: str | None = None) -> None:
        self.kept_for.append(keep_groups)
        self.config = config

    def takes_orders(self, listening: socket.socket) -> None:
        listening.close()

    def client(self) -> SupervisorClient:
        near, far = socket.socketpair()
        self._ends.append(near)
        Thread(target=self._serve, args=[far], daemon=True).start()
        client = SupervisorClient(near)
        client.wait_for_turn()
        return client

    def pair(self) -> tuple[socket.socket, socket.socket]:
        """Two ends that are closed with all else."""
        near, far = socket.socketpair()
        near.settimeout(30)
        self._ends += [near, far]
        return near, far

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while True:
                self._serving = connection
                try:
                    reply = self._requests.answer(self.frontend, *receive(connection))
                except (EOFError, OSError):
                    return
                if reply is not None:
                    send(connection, reply.message, reply.descriptors)
                    close_all(reply.descriptors if reply.given else ())


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


class Started:
    """A worker that `client` has started, and our ends."""

    def __init__(self, bench: Bench, folder: Path, note: dict[str, Any]) -> None:
        self.data, end = bench.pair()
        stdout, stderr = os.pipe(), os.pipe()
        command = [sys.executable, "-I", "-S", "-c", CHILD]
        outputs = [stdout[1], stderr[1], stdout[0], stderr[0]]
        inherited = [("--data-fd", end.fileno())]
        try:
            with end:
                self.pid = bench.client().start(command, inherited, outputs, dict(os.environ), str(folder), note)
        finally:
            for fd in (*stdout, *stderr):
                os.close(fd)
        assert self.data.recv(10) == b"up"


def test_a_worker_goes_on_and_the_next_frontend_takes_it_over(bench: Bench, tmp_path: Path) -> None:
    started = Started(bench, tmp_path, {"group": ["m", "1.0", 0]})
    bench.children.frontend_ended(bench.frontend)
    client = bench.client()
    assert client.turn.kept == [{"pid": started.pid, "held": False, "old": False, "group": ["m", "1.0", 0]}]
    near, far = bench.pair()
    with far:
        stdout, stderr = client.adopt(started.pid, [far.fileno(), far.fileno()])
    assert near.recv(10) == b"adopted"
    assert os.read(stdout, 100) == b"printed\n"
    assert [note["held"] for note in bench.client().turn.kept] == [True]
    os.kill(started.pid, signal.SIGKILL)
    assert client.reap(started.pid) == -signal.SIGKILL
    for fd in (stdout, stderr):
        os.close(fd)


def test_a_worker_without_a_note_ends_with_its_frontend(bench: Bench, tmp_path: Path) -> None:
    (work_dir := tmp_path / "work").mkdir()
    started = Started(bench, work_dir, {})
    bench.children.frontend_ended(bench.frontend)
    assert bench.client().turn.kept == []
    assert not psutil.pid_exists(started.pid)
    assert not work_dir.exists()


def test_a_worker_that_was_stopped_to_be_killed_ends_with_its_frontend(bench: Bench, tmp_path: Path) -> None:
    """Another frontend would wait for it as long as for a load."""
    started = Started(bench, tmp_path, {"group": ["m", "1.0", 0]})
    os.kill(started.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, started.pid, os.WSTOPPED | os.WNOWAIT)
    bench.children.frontend_ended(bench.frontend)
    assert bench.client().turn.kept == []
    assert not psutil.pid_exists(started.pid)


def test_those_that_nobody_takes_over_are_ended(bench: Bench, tmp_path: Path) -> None:
    started = Started(bench, tmp_path, {"group": []})
    assert bench.children.end_waiting() == 0
    bench.children.frontend_ended(bench.frontend)
    assert bench.children.end_waiting() == 1
    assert not psutil.pid_exists(started.pid)


def test_a_worker_goes_over_with_its_connections(bench: Bench, tmp_path: Path) -> None:
    """It hears nothing of it; its output is read on."""
    started = Started(bench, tmp_path, {"group": []})
    outputs = bench.client().adopt(started.pid, [])
    assert os.read(outputs[0], 100) == b"printed\n"
    for fd in outputs:
        os.close(fd)
    bench.client().release([started.pid, 1])
    assert bench.released == 1
    assert [note["held"] for note in bench.client().turn.kept] == [False]


def test_a_line_leads_to_the_frontend_that_follows(bench: Bench) -> None:
    line, followed = bench.client().hand_over(2.5, ["job"])
    with line:
        assert line.recv(10) == b"line"
    assert not followed
    assert bench.handed_over_by == (2.5, ["job"])


def test_errors_are_the_frontends_to_handle(bench: Bench, tmp_path: Path) -> None:
    client = bench.client()
    with pytest.raises(FileNotFoundError):
        Started(bench, tmp_path / "missing", {})
    with pytest.raises(OSError, match=r"process 1 is no worker of this server"):
        client.reap(1)
    client.started(7.5, b"workers=\xe4\n")
    assert (bench.kept_for, bench.config) == ([7.5], "workers=\xe4\n")


def test_listening_sockets_are_found_again(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        address = bound.getsockname()
        bench.client().keep("inference", [bound])
    (found,) = bench.client().find("inference")
    with found, socket.create_connection(address), found.accept()[0]:
        assert found.getsockname() == address
    bench.sockets.drop("inference")


def test_a_frontend_of_another_version_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VERSION", 9)
    monkeypatch.setattr(module, "OLDEST", 9)
    refused = r"The supervisor does not take this server: the supervisor speaks version 3, and the frontend version 9\."
    with pytest.raises(SupervisorError, match=refused):
        bench.client()


def test_the_version_that_both_speak_is_spoken(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VERSION", 9)
    bench.client()
    assert bench.frontend.spoken == 3


def test_an_unknown_request_is_refused(bench: Bench) -> None:
    with pytest.raises(OSError, match=r"the supervisor does not know the request 'nonsense'"):
        bench.client()._ask("nonsense")


def test_an_installation_that_was_overwritten_is_refused(bench: Bench) -> None:
    bench.running = FrontendProcess.__new__(FrontendProcess)
    bench.running.program = program()._replace(stamp=1)
    with pytest.raises(SupervisorError, match=r"was overwritten since the server has started"):
        bench.client()
    bench.running.program = Program("/opt/older/bin/python", "0.1", 1)
    bench.client()


def test_a_program_elsewhere_is_another_one() -> None:
    assert not is_overwritten(Program("/a", "1", 1), Program("/a", "1", 1))
    assert not is_overwritten(Program("/a", "1", 1), Program("/b", "2", 2))
    assert is_overwritten(Program("/a", "1", 1), Program("/a", "1", 2))


def test_a_worker_for_which_there_is_no_room_is_refused(bench: Bench, tmp_path: Path) -> None:
    """Before the last descriptor is taken, without which no frontend could follow."""
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(60)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files) + 20, hard))
    try:
        with pytest.raises(OSError, match=r"the supervisor may have \d+ open files, and keeps three for each worker"):
            Started(bench, tmp_path, {})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        close_all(files)
    Started(bench, tmp_path, {})


def test_a_frontend_has_the_limit_that_the_supervisor_has_raised(bench: Bench) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    bench.client()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
    bench._requests._descriptors = soft - 1
    try:
        bench.client()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft - 1, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_orphans_are_reaped_and_own_children_are_not() -> None:
    code = "import os; os.fork() or os._exit(0); os.wait()"  # the first has ended before the second is looked at
    own, orphan = (subprocess.Popen([sys.executable, "-c", code]) for _ in range(2))
    os.waitid(os.P_PID, orphan.pid, os.WEXITED | os.WNOWAIT)
    os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
    reap_others({own.pid})
    assert own.wait() == 0
    reap_others(())
    with pytest.raises(ChildProcessError):
        os.waitpid(orphan.pid, os.WNOHANG)
    orphan.wait()


class Answers(FrontendSupervisor):
    """Only answers."""

    def __init__(self, requests: SupervisorRequests) -> None:
        self._requests = requests


def test_what_nobody_takes_is_closed() -> None:
    """A frontend that dies while it hands over: else the line to the next one would never end."""
    bench, before = Bench(), open_descriptors()
    near, far = socket.socketpair()
    frontend = FrontendProcess(InheritedProcess(1), near)
    send(far, {"ask": "hand_over", "limit": 1.0, "jobs": []})
    far.close()
    Answers(bench._requests)._answer(frontend)
    assert near.fileno() == -1
    bench.close()
    assert not open_descriptors() - before


def test_descriptors_that_do_not_fit_are_refused_and_the_frontend_goes_on() -> None:
    """It would be ended otherwise, and the next one after it."""
    bench, files = Bench(), [os.memfd_create("file") for _ in range(20)]
    near, far = socket.socketpair()
    frontend = FrontendProcess(InheritedProcess(os.getpid()), near)
    send(far, {"ask": "keep", "name": "x"}, files)
    send(far, {"ask": "drop", "name": "y"})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files) + 10, hard))
    try:
        Answers(bench._requests)._answer(frontend)
        Answers(bench._requests)._answer(frontend)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert receive(far)[0]["error"].startswith("the supervisor may have")
    assert receive(far)[0] == {}
    for end in (near, far):
        end.close()
    close_all(files)
    bench.close()


def test_a_frontend_says_of_which_program_its_supervisor_is(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that is another one, its environment is needed."""
    client, own = bench.client(), program()
    shown = {"pid": os.getpid(), "release": own.version, "python": own.python}
    assert client.describe() == {**shown, "another": False}
    monkeypatch.setattr(module, "program", lambda: own._replace(python="/opt/next/bin/python"))
    assert client.describe() == {**shown, "another": True}
