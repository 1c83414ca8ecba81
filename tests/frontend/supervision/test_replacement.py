"""A supervisor that becomes another program, and the state that it leaves to that one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from msx_frontend.supervision import __main__ as main_module
from msx_frontend.supervision import state as module
from msx_frontend.supervision.children import Child, Children
from msx_frontend.supervision.fork import FORK_FIRST
from msx_frontend.supervision.frontend_command import FrontendCommand
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.handled import HANDLED
from msx_frontend.supervision.leaving import Leaving
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.orders import Orders
from msx_frontend.supervision.process import InheritedProcess
from msx_frontend.supervision.program import program
from msx_frontend.supervision.replacement import Replacement
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.state import StateError, SupervisorState, descriptors
from msx_frontend.supervision.succession import Succession
from msx_frontend.supervision.wire import Message, close_all
from tests.descriptors import open_descriptors


class Parts:
    """A supervisor without its loop."""

    def __init__(self) -> None:
        self.children, self.sockets, self.restarts = Children(), KeptSockets(), Restarts(60.0)
        command = FrontendCommand([])
        self.succession = Succession(command, self.restarts, self.children, self.sockets)
        self.state = SupervisorState(self.succession, self.children, self.sockets, self.restarts)

    def fill(self, ends: Iterator[socket.socket]) -> None:
        """A frontend that serves, one that leaves, a worker of each and one that waits, and all that is kept."""
        serving, leaving = (FrontendProcess(InheritedProcess(pid), next(ends)) for pid in (1, 2))
        serving.program, serving.started, serving.waits, leaving.leaves = program(), True, True, True
        one = self.succession
        one.frontend, one.follows, one.orders, one.leaving = serving, True, Orders(next(ends)), Leaving(leaving)
        one.leaving.connect(5.0, ["job"]).close()
        one.command.config, one.command.falls_back = "a=1", True
        for pid, holder in ((7, serving), (8, leaving), (9, None)):
            outputs = [os.memfd_create("out"), os.memfd_create("err")]
            note = {"group": ["m", "1", pid]}
            self.children.put(Child(InheritedProcess(pid), note, "/w", next(ends), outputs, holder))
        self.sockets.keep("inference", [os.memfd_create("listens"), os.memfd_create("listens")])
        self.restarts.started()
        self.restarts.crashed()

    @property
    def held(self) -> Iterator[socket.socket]:
        """Sockets that its parts own."""
        yield from (frontend.connection for frontend in self.succession.all())
        yield from (child.line for child in self.children)
        if self.succession.orders is not None:
            yield self.succession.orders.listening
        if self.succession.leaving is not None and self.succession.leaving.line is not None:
            yield self.succession.leaving.line


@pytest.fixture
def passed() -> Iterator[Message]:
    """The state of a full server, whose descriptors are open, and nobody's."""
    parts, ends = Parts(), [socket.socketpair() for _ in range(6)]
    parts.fill(near for near, _ in ends)
    state: Message = json.loads(json.dumps(parts.state.describe()))
    for held in parts.held:
        held.detach()
    yield state
    close_all(descriptors(state))
    for _, far in ends:
        far.close()


@pytest.fixture
def next_one() -> Iterator[Parts]:
    """The supervisor of the next program."""
    parts = Parts()
    yield parts
    for held in parts.held:
        held.detach()


def test_the_next_program_has_the_whole_state(passed: Message, next_one: Parts) -> None:
    next_one.state.restore(passed)
    assert json.loads(json.dumps(next_one.state.describe())) == passed
    serving = next_one.succession.frontend
    assert serving is not None
    assert (serving.pid, serving.started, serving.waits, serving.program) == (1, True, True, program())
    assert [child.holder is serving for child in next_one.children] == [True, False, False]
    assert [note["pid"] for note in next_one.children.notes(None)] == [9]
    assert next_one.sockets.find("inference") == passed["sockets"]["inference"]


def test_a_frontend_that_has_closed_its_connection_is_waited_for(next_one: Parts) -> None:
    """One that leaves does so just when the next one has started: its process ends a moment later."""
    parts, ends = Parts(), [socket.socketpair() for _ in range(6)]
    parts.fill(near for near, _ in ends)
    leaving = parts.succession.leaving
    assert leaving is not None
    leaving.frontend.close()
    state: Message = json.loads(json.dumps(parts.state.describe()))
    assert -1 not in descriptors(state)
    for held in parts.held:
        held.detach()
    next_one.state.restore(state)
    ended = next_one.succession.leaving
    assert ended is not None
    assert (ended.frontend.pid, ended.frontend.connection.fileno()) == (2, -1)
    close_all(descriptors(state))
    for _, far in ends:
        far.close()


def test_each_descriptor_is_known_once(passed: Message) -> None:
    every = [*descriptors(passed)]
    assert len(every) == len({*every}) == 2 + 3 * 3 + 2 + 1 + 1
    for fd in every:
        os.fstat(fd)


def test_a_state_of_another_version_changes_nothing(passed: Message, next_one: Parts) -> None:
    with pytest.raises(StateError, match="it does not read a state of version 9"):
        next_one.state.restore({**passed, "version": 9})
    assert next_one.succession.all() == []


def test_a_frontend_that_speaks_an_older_version_stays_with_its_supervisor(
    passed: Message, next_one: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OLDEST", 99)
    with pytest.raises(StateError, match=r"it does not speak version \d+, which a frontend that runs speaks"):
        next_one.state.restore(passed)


def test_a_program_that_cannot_be_run_changes_nothing(tmp_path: Path) -> None:
    kept, waiting = os.memfd_create("kept"), os.memfd_create("waiting")
    before = open_descriptors()
    error = Replacement([]).become(str(tmp_path / "none"), {}, [kept], waiting, {})
    assert isinstance(error, FileNotFoundError)
    assert not open_descriptors() - before
    assert not any(map(os.get_inheritable, (kept, waiting)))
    os.close(kept)
    os.close(waiting)


def test_a_state_that_cannot_be_told_changes_nothing() -> None:
    kept = os.memfd_create("kept")
    before = open_descriptors()
    with pytest.raises(TypeError, match="not JSON serializable"):
        Replacement([]).become(sys.executable, {"odd": {1}}, [kept], None, {})
    assert not open_descriptors() - before
    assert not os.get_inheritable(kept)
    os.close(kept)


BECOMES = """
import os, sys
from msx_frontend.supervision import replacement
replacement.MODULE = "tests.frontend.supervision.next_program"
read, write = os.pipe()
print(os.getpid(), flush=True)
raise replacement.Replacement(["--", "end"]).become(sys.executable, {"number": 5}, [read], write, {"pid": 1})
"""


def test_the_next_program_has_number_state_and_descriptors() -> None:
    env = {**os.environ, "PYTHONPATH": os.getcwd()}  # where the next program is, which leaves out its working folder
    command = [sys.executable, "-c", BECOMES]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    before, after = done.stdout.splitlines()
    assert json.loads(after) == {
        "pid": int(before),
        "state": {"number": 5},
        "answer": {"pid": 1},
        "read": "x",
        "inherited": [],
        "arguments": [f"--before={sys.executable}", "--", "end"],
    }


FORKS = """
import os
import signal
import sys
from msx_frontend.supervision import supervisor
from msx_frontend.supervision.fork import fork_frontend

class Blocked:
    def run(self, first):
        code = first.process.wait()
        print("supervisor", sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))), flush=True)
        return 5 + code

supervisor.made_supervisor = lambda *given, grown: Blocked()
fork_frontend([])
print("child", sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())), os.getsid(0) == os.getpid(), flush=True)
sys.exit(2)
"""
ONLY_FRONTENDS = """
import os
from msx_frontend.supervision import supervisor
from msx_frontend.supervision.fork import fork_frontend

class Ended:
    def run(self, first):
        first.process.wait()
        return 5 if os.read(read, 9) == b"told" and not os.read(read, 1) else 1

supervisor.made_supervisor = lambda *given, grown: Ended()
read, write = os.pipe()
fork_frontend([], given=[write])
os.write(write, b"told")
"""

FORKS_FIRST = """
import os
import sys
from msx_frontend.supervision import supervisor

class Ended:
    def run(self, first):
        first.process.wait()
        return 5 if os.read(read, 9) == b"told" and not os.read(read, 1) and "MSX_READY_FD" not in os.environ else 1

def made_supervisor(arguments, grown):
    assert arguments == ["--start", "--foreground"]
    return Ended()

supervisor.made_supervisor = made_supervisor
read, write = os.pipe()
os.environ["MSX_READY_FD"] = str(write)
sys.argv = ["-c", "msx_frontend.cli.main", "--start", "--foreground"]
"""
TOLD = """
assert "click" not in sys.modules
os.write(int(os.environ["MSX_READY_FD"]), b"told")
"""


def test_a_server_in_the_background_forks_before_it_reads_anything() -> None:
    """Its first frontend has the pipe of the command that waits, and the others know nothing of it."""
    program = f"{FORKS_FIRST}{FORK_FIRST}{TOLD}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (5, "")


FAILS_TO_FORK = """
import os

def fork():
    raise BlockingIOError(11, "Resource temporarily unavailable")

os.fork = fork
os.environ["MSX_READY_FD"] = "1"
"""
GOES_ON = """
print(os.environ["MSX_READY_FD"], "MSX_SUPERVISOR_FD" in os.environ)
"""


def test_a_fork_that_fails_is_tried_again_where_the_command_can_be_told() -> None:
    """`run_in_foreground` is what does so."""
    program = f"{FAILS_TO_FORK}{FORK_FIRST}{GOES_ON}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("1 False\n", "", 0)


def test_signals_wait_for_a_supervisor_that_begins() -> None:
    """None ends it before it can hand it on; its frontend hears those that it gets itself."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60)
    assert sorted(done.stdout.splitlines()) == ["child [] True", f"supervisor {sorted(map(int, HANDLED))}"]
    assert (done.returncode, done.stderr) == (7, "")


def test_a_command_that_waits_for_the_server_waits_for_its_frontend_alone() -> None:
    """It reads to the end of a pipe, which the supervisor does not hold open."""
    done = subprocess.run([sys.executable, "-c", ONLY_FRONTENDS], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (5, "")


def test_options_of_another_release_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program before this one gives them, and is gone when they are read."""
    made: list[Any] = []

    def make(*given: Any) -> SimpleNamespace:
        made.append(given)
        return SimpleNamespace(run=lambda: 3)

    monkeypatch.setattr(main_module, "made_supervisor", make)
    monkeypatch.setattr(sys, "argv", ["", "--later=1", "--descriptors=9", "--", "msx-serve", "--start"])
    assert main_module.main() == 3
    assert made == [(["--start"], 9)]
