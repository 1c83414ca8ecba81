"""Turns of frontends whose processes are not there: crashes, upgrades and signals in any order."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from msx_frontend.supervision import upgrade
from msx_frontend.supervision.children import Children
from msx_frontend.supervision.frontend_command import FrontendCommand
from msx_frontend.supervision.frontend_process import CONFIG_FD, FrontendProcess
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.succession import Succession
from msx_frontend.supervision.upgrade import Upgrade
from msx_frontend.supervision.wire import VERSION, close_all, receive


class ScriptedFrontend(FrontendProcess):
    """A frontend's process that ends when the test gives it a `code`."""

    def __init__(self) -> None:
        self.connection, self.far = socket.socketpair()
        self.far.settimeout(0)
        self.process: Any = self
        self.started = self.waits = self.leaves = False
        self.program, self.spoken, self.states = None, VERSION, ()
        self.code: int | None = None
        self.config = b""
        """The configuration that it is to read instead of the file."""
        self.signals: list[int] = []

    @property
    def pid(self) -> int:
        return 1

    def signal(self, number: int) -> None:
        self.signals.append(number)

    def exit_code(self) -> int | None:
        return self.code

    def wait(self) -> None: ...

    def close(self) -> None:
        self.connection.close()
        self.far.close()

    def has_turn(self) -> bool:
        """Whether it was given its turn since it was asked last."""
        try:
            _, descriptors = receive(self.far)
        except BlockingIOError:
            return False
        close_all(descriptors)
        return True


class Server(Succession):
    """Does what its frontends ask for, in few words."""

    def __init__(self) -> None:
        self.program_is_gone = False
        super().__init__(FrontendCommand([]), Restarts(60.0), Children(), KeptSockets())
        self.start()

    @property
    def now(self) -> ScriptedFrontend:
        """The frontend that serves, or starts in order to."""
        assert isinstance(self.frontend, ScriptedFrontend)
        return self.frontend

    def serve(self) -> ScriptedFrontend:
        one = self.now
        self.turn_asked(one)
        assert one.has_turn()
        self.frontend_started(one, None)
        return one

    def order(self) -> ScriptedFrontend:
        """The frontend of an upgrade."""
        self.begin_upgrade(None, None, workers=False)
        assert self.upgrade is not None
        assert isinstance(self.upgrade.frontend, ScriptedFrontend)
        return self.upgrade.frontend

    def end_with(self, one: ScriptedFrontend, code: int) -> None:
        one.code = code
        self.look_at_ends()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made: list[ScriptedFrontend] = []
    one: Server | None = None

    def make(python: str, arguments: Sequence[str], handed_on: Mapping[str, int]) -> ScriptedFrontend:
        if one is not None and one.program_is_gone:
            raise FileNotFoundError(2, "No such file or directory", "python")
        made.append(ScriptedFrontend())
        if (fd := handed_on.get(CONFIG_FD)) is not None:
            made[-1].config = os.pread(fd, 100, 0)
        return made[-1]

    monkeypatch.setattr(FrontendProcess, "start", make)
    one = Server()
    yield one
    one.close()
    for frontend in made:
        frontend.close()


def test_a_frontend_that_starts_is_not_told_to_leave(server: Server) -> None:
    """The one that served has crashed meanwhile. The upgrade goes on when the next one answers."""
    first = server.serve()
    upgraded = server.order()
    server.end_with(first, 137)
    assert server.due() is None
    second = server.now
    server.turn_asked(second)
    server.turn_asked(upgraded)
    assert second is not first
    assert second.signals == []
    server.frontend_started(second, None)
    assert second.signals == [signal.SIGUSR2]


def test_a_frontend_that_does_not_hand_over_goes_on(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its loop hangs, say: the command hears that, and the log, and another upgrade can be ordered."""
    told: list[str] = []
    monkeypatch.setattr(Upgrade, "_answer", lambda self, message: told.append(message["refused"]))
    monkeypatch.setattr(upgrade, "HAND_OVER_LIMIT", 0.0)
    first, upgraded = server.serve(), server.order()
    server.turn_asked(upgraded)
    assert first.signals == [signal.SIGUSR2]
    assert server.due() is None
    assert told[0].startswith("The server has not handed over within")
    assert capsys.readouterr().err == f"msx-serve: not upgraded: {told[0]}\n"
    assert upgraded.signals == [signal.SIGKILL]
    assert (server.now, server.refusal()) == (first, "")


def test_a_frontend_that_has_its_turn_is_not_late(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "HAND_OVER_LIMIT", 0.0)
    first, upgraded = server.serve(), server.order()
    server.turn_asked(upgraded)
    server.handed_over(first, 5.0, []).close()
    assert server.due() is None
    assert (server.now, upgraded.signals) == (upgraded, [])
    server.frontend_started(upgraded, None)


def test_a_start_that_ends_with_0_is_no_end_of_the_server(server: Server) -> None:
    server.end_with(server.serve(), 137)
    server.start()
    server.end_with(server.now, 0)
    assert not server.stopping
    assert server.due() is None


def test_a_frontend_that_has_answered_stops_the_server_by_0(server: Server) -> None:
    server.end_with(server.serve(), 0)
    assert server.stopping
    assert server.due() == 0


def test_an_upgrade_takes_over_at_once_where_no_frontend_runs(server: Server) -> None:
    """A crash loop pauses; who orders the upgrade wants to get rid of it."""
    first = server.serve()
    upgraded = server.order()
    server.end_with(first, 137)
    server.turn_asked(upgraded)
    assert server.now is upgraded
    assert upgraded.has_turn()
    server.frontend_started(upgraded, None)
    assert server.upgrade is None
    assert server.refusal() == "Another upgrade is under way."
    server.succeeded = None
    assert server.refusal() == ""


def test_a_server_that_stops_is_not_taken_over(server: Server) -> None:
    first = server.serve()
    upgraded = server.order()
    server.end(signal.SIGTERM)
    server.turn_asked(upgraded)
    assert first.signals == [signal.SIGTERM]
    server.end_with(first, 0)
    server.turn_asked(upgraded)
    assert server.due() == 0


def test_a_stop_before_the_hand_over_is_a_stop(server: Server) -> None:
    """The frontend that leaves has the signal; its requests run to their end, and nobody follows."""
    first = server.serve()
    upgraded = server.order()
    server.turn_asked(upgraded)
    server.end(signal.SIGTERM)
    with server.handed_over(first, 60.0, []):
        assert server.frontend is None
        assert not upgraded.has_turn()
        assert server.due() is None
        server.end(signal.SIGTERM)
        assert first.signals == [signal.SIGUSR2, signal.SIGTERM, signal.SIGTERM]
    server.end_with(first, 0)
    assert server.due() == 0


def test_groups_that_wait_too_long_are_ended_while_the_server_stops(server: Server) -> None:
    server.serve()
    server.end(signal.SIGTERM)
    with server.handed_over(server.now, 60.0, []):
        server.workers_released()
        server._restarts.keep_groups = 0.0
        server.due()
        assert server.seconds_left() != 0


def test_a_frontend_that_cannot_be_run_is_a_crash(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    first = server.serve()
    server.program_is_gone = True
    server.end_with(first, 137)
    for _ in range(3):
        assert server.due() is None
        assert server.frontend is None
    assert "msx-serve: no frontend can be run: " in capsys.readouterr().err
    assert server.seconds_left()


def test_the_requests_of_one_that_leaves_run_on_where_none_can_be_run(server: Server) -> None:
    first = server.serve()
    server.program_is_gone = True
    with server.handed_over(first, 60.0, []):
        assert server.frontend is None
        server.look_at_ends()
        assert server.due() is None


def test_a_server_whose_first_frontend_cannot_be_run_ends(server: Server) -> None:
    server.end_with(server.now, 1)
    server.program_is_gone = True
    server.start()
    assert server.due() == 1


def test_all_frontends_pause_with_the_supervisor(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-Z reaches the shell's own child alone."""
    first, upgraded = server.serve(), server.order()
    stopped: list[tuple[int, int, list[int]]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: stopped.append((pid, number, [*first.signals])))
    server.pause()
    assert stopped == [(os.getpid(), signal.SIGSTOP, [signal.SIGSTOP])]
    assert first.signals == upgraded.signals == [signal.SIGSTOP, signal.SIGCONT]


def test_groups_wait_as_long_as_the_last_frontend_has_said(server: Server) -> None:
    """One that follows has read the configuration again."""
    one = server.now
    for said, waits in ((5.0, 5.0), (None, 5.0), (70.0, 70.0)):
        server.frontend_started(one, said)
        assert server._restarts.keep_groups == waits


def failing_upgrade(server: Server) -> ScriptedFrontend:
    """It ends when the one before it has handed over. Returns the frontend that follows."""
    first, upgraded = server.serve(), server.order()
    server.turn_asked(upgraded)
    server.handed_over(first, 5.0, []).close()
    assert upgraded.has_turn()
    server.end_with(upgraded, 1)
    assert server.due() is None
    return server.now


def test_one_that_does_not_come_up_is_followed_by_one_with_the_configuration_before(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []
    monkeypatch.setattr(Upgrade, "_answer", lambda self, message: told.append(message["refused"]))
    server.command.config = "batch=1"
    following = failing_upgrade(server)
    assert following.config == b"batch=1"
    assert "is started again with its configuration, and takes the workers over" in told[0]
    assert "after 60 s (keep_groups)" in told[0]
    assert told[0] in capsys.readouterr().err
    server.end_with(following, 1)
    assert server.due() is None
    assert server.now.config == b"batch=1"


def test_the_next_upgrade_reads_the_file_again(server: Server) -> None:
    server.command.config = "batch=1"
    following = failing_upgrade(server)
    assert server.leaving is not None
    server.end_with(server.leaving.frontend, 0)  # type: ignore[arg-type]
    server.turn_asked(following)
    server.frontend_started(following, None, "batch=1")
    corrected = server.order()
    assert corrected.config == b""
    server.turn_asked(corrected)
    server.handed_over(following, 5.0, []).close()
    server.frontend_started(corrected, None, "batch=2")
    server.end_with(corrected, 137)
    assert server.due() is None
    assert (server.now.config, server.command.config) == (b"", "batch=2")


def test_after_a_crash_a_file_that_has_become_wrong_is_left(server: Server) -> None:
    first = server.serve()
    server.frontend_started(first, None, "batch=1")
    server.end_with(first, 137)
    assert server.due() is None
    assert server.now.config == b""
    server.end_with(server.now, 1)
    assert server.due() is None
    assert server.now.config == b"batch=1"
