"""When the supervisor becomes another program, and what goes on meanwhile."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from msx_frontend.supervision import supervisor as supervisor_module
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.orders import Orders
from msx_frontend.supervision.own_program import KEEP, OwnProgram
from msx_frontend.supervision.program import Program, program
from msx_frontend.supervision.replacement import Replacement
from msx_frontend.supervision.requests import SupervisorRequests
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.supervisor import FrontendSupervisor
from msx_frontend.supervision.wire import STATES, close_all, receive, send
from tests.frontend.supervision.test_replacement import Parts
from tests.frontend.supervision.test_trial import script

NEXT = program()._replace(version="next")


class Stays(Replacement):
    """It would become another program."""

    def __init__(self) -> None:
        super().__init__([])
        self.tried: list[str] = []

    def become(self, python: str, *given: object) -> OSError:
        self.tried.append(python)
        return OSError(2, "No such file or directory")


class Bench(FrontendSupervisor):
    """A supervisor whose frontend has answered for a while, without signals."""

    def __init__(self, *, grown: bool) -> None:
        parts, self.read, self.notices = Parts(), os.pipe(), list[str]()
        self._wake, self.replacement = self.read[0], Stays()
        self._succession, self._state = parts.succession, parts.state
        connection, self.end = socket.socketpair()
        frontend = FrontendProcess(subprocess.Popen(["sleep", "600"]), connection)
        frontend.started, self._succession.frontend = True, frontend
        now = iter(range(0, 100_000, 100))
        self.restarts = Restarts(60.0, lambda: float(next(now)))
        self.restarts.started()
        self._own = OwnProgram(
            parts.succession, self.restarts, parts.state, self.replacement, self._signalled, grown=grown
        )
        self._requests = SupervisorRequests(parts.children, parts.sockets, parts.succession, self._own.now)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind("")
        listening.listen()
        self._succession.orders = Orders(listening)

    @property
    def tried(self) -> list[str]:
        assert isinstance(self.replacement, Stays)
        return self.replacement.tried

    def upgraded(self, to: Program = NEXT, python: str = sys.executable) -> None:
        """The frontend of an upgrade serves."""
        frontend = SimpleNamespace(pid=1, program=to, states=STATES)
        upgrade: Any = SimpleNamespace(
            frontend=frontend, python=python, waiting=None, succeeded=lambda notice="": self.notices.append(notice)
        )
        self._succession.succeeded = upgrade

    def order(self) -> socket.socket:
        """A command that has not said yet what it wants."""
        command, orders = socket.socket(socket.AF_UNIX), self._succession.orders
        assert orders is not None
        command.settimeout(60)
        command.connect(orders.listening.getsockname())
        orders.readable(orders.listening)
        return command

    def until_tried(self) -> None:
        """Go on until the trial that is under way has ended."""
        for pid in self._own.pids:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self._own.turn()

    def close(self) -> None:
        frontend, orders = self._succession.frontend, self._succession.orders
        assert frontend is not None
        assert orders is not None
        self._own.close()
        frontend.signal(9)
        frontend.process.wait()
        frontend.close()
        orders.close()
        self.end.close()
        close_all(self.read)


@pytest.fixture
def grown() -> Iterator[Bench]:
    bench = Bench(grown=True)
    yield bench
    bench.close()


@pytest.fixture
def small() -> Iterator[Bench]:
    bench = Bench(grown=False)
    yield bench
    bench.close()


def test_a_supervisor_shrinks_once_when_the_start_is_over(grown: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    grown._own.turn()
    grown.until_tried()
    assert grown.tried == [sys.executable]
    assert "the supervisor stays as large as it is: No such file or directory" in capfd.readouterr().err
    grown._own.turn()
    assert grown._own.pids == set()


def test_a_supervisor_does_not_become_what_was_installed_meanwhile(
    grown: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    grown._own.now = grown._own.now._replace(stamp=1)
    grown._own.turn()
    assert grown._own.pids == set()
    assert "its installation was overwritten" in capfd.readouterr().err


def test_it_shrinks_when_nothing_else_is_under_way(grown: Bench) -> None:
    grown._succession.stopping = True
    grown._own.turn()
    assert grown._own.pids == set()
    grown._succession.stopping = False
    with grown.order():
        grown._own.turn()
        assert grown._own.pids == set()
    assert grown._succession.orders is not None
    grown._succession.orders.refuse_all("")
    grown._own.turn()
    (trial,) = grown._own.pids
    with grown.order():
        grown._own.turn()
    assert grown._own.pids == set()
    assert not psutil.pid_exists(trial)


@pytest.mark.parametrize("is_grown", [False, True])
def test_an_upgrade_of_the_same_program_gives_back_what_the_start_needed(is_grown: bool) -> None:
    bench = Bench(grown=is_grown)
    bench.upgraded(program())
    bench._own.turn()
    bench.until_tried()
    assert len(bench.tried) == is_grown
    assert len(bench.notices) == 1
    assert bool(bench.notices[0]) == is_grown
    bench.close()


def test_a_command_that_gives_its_order_meanwhile_is_refused(small: Bench) -> None:
    """Else it would only find that its connection has ended."""
    small.upgraded()
    small._own.turn()
    with small.order() as command:
        small.until_tried()
        assert receive(command)[0] == {"refused": "Another upgrade is under way."}
    (notice,) = small.notices
    assert f": {sys.executable} cannot be run: No such file or directory. {KEEP}" in notice


def test_a_program_that_cannot_be_imported_is_not_become(small: Bench, tmp_path: Path) -> None:
    small.upgraded(python=script(tmp_path, "exit 3"))
    small._own.turn()
    small.until_tried()
    assert "cannot be run: the import of its modules ended with exit code 3" in small.notices[0]
    small.upgraded(python=str(tmp_path / "none"))
    small._own.turn()
    assert "cannot be run: No such file or directory" in small.notices[1]
    assert small.tried == []


def test_one_that_tells_odd_versions_of_its_state_is_not_become(small: Bench) -> None:
    small.upgraded()
    assert small._succession.succeeded is not None
    small._succession.succeeded.frontend.states = cast(Any, 5)
    small._own.turn()
    assert "cannot be run: TypeError" in small.notices[0]


def test_a_signal_is_handled_first(small: Bench) -> None:
    small.upgraded()
    small._own.turn()
    os.write(small.read[1], b"\n")
    small.until_tried()
    assert (small.tried, small.notices) == ([], [])
    os.read(small.read[0], 1)
    small._own.turn()
    assert len(small.tried) == len(small.notices) == 1


def test_it_waits_for_a_frontend_that_serves(small: Bench) -> None:
    frontend = small._succession.frontend
    assert frontend is not None
    small.upgraded()
    small._own.turn()
    frontend.started = False
    small.until_tried()
    assert small.tried == []
    frontend.started = True
    small._own.turn()
    assert len(small.tried) == 1


def test_frontends_are_answered_while_imports_hang(
    small: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "reap_others", lambda own: None)  # they are this test's
    small.upgraded(python=script(tmp_path, "exec sleep 600"))
    for _ in range(2):
        send(small.end, {"ask": "program"})
        assert small._turn() is None
        assert select.select([small.end], [], [], 0)[0]
        assert receive(small.end)[0] == {"program": [*small._own.now]}
    (trial,) = small._own.pids
    assert psutil.Process(trial).is_running()
    assert small.notices == []
