"""The supervisor goes on, whatever a program says that is no frontend: all workers would end with it."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from msx_frontend.supervision import upgrade as module
from msx_frontend.supervision.children import Children
from msx_frontend.supervision.frontend_command import FrontendCommand
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.orders import Command
from msx_frontend.supervision.program import program
from msx_frontend.supervision.requests import SupervisorRequests
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.succession import Succession
from msx_frontend.supervision.supervisor import FrontendSupervisor
from msx_frontend.supervision.upgrade import Upgrade
from msx_frontend.supervision.wire import HEAD, receive
from tests.frontend.supervision.test_upgrade import program as doing

HELLO = b'{"ask": "hello", "version": 3, "program": ["python", "1.0", 1], %b}'


class Process:
    """Notes how it is ended."""

    pid, returncode = 1, None

    def __init__(self) -> None:
        self.signals = list[int]()

    def poll(self) -> int | None:
        return None

    def wait(self) -> int:
        return 0

    def send_signal(self, sig: int) -> None:
        self.signals.append(sig)


class Listens(FrontendSupervisor):
    """Answers frontends, and nothing else."""

    def __init__(self) -> None:
        children, sockets = Children(), KeptSockets()
        self._succession = Succession(FrontendCommand([]), Restarts(), children, sockets)
        self._requests = SupervisorRequests(children, sockets, self._succession, program())

    def hears(self, text: bytes) -> list[int]:
        """Signals that a frontend which says this is sent."""
        near, far = socket.socketpair()
        with far:
            frontend = FrontendProcess(process := Process(), near)
            far.sendall(HEAD.pack(len(text), 0) + text)
            self._answer(frontend)
            assert near.fileno() == -1
        return process.signals


@pytest.mark.parametrize(
    "text",
    [
        b"[]", b"5", b"null", b"{", b"\xff", b"[" * 100_000, b'{"ask": "orders"}', b'{"ask": "hello"}',
        b'{"ask": "hello", "version": 3, "program": 5}', b'{"ask": "hello", "version": "x", "program": []}',
        b'{"ask": "adopt", "pid": []}', b'{"ask": "start"}', b'{"ask": "release", "pids": 5}',
        HELLO % b'"stop": "x"', HELLO % b'"stop": 5000', HELLO % b'"states": 5',
        b'{"ask": "started", "keep_groups": "x"}', b'{"ask": "started", "keep_groups": NaN}',
        b'{"ask": "started", "keep_groups": 1e300}', b'{"ask": "started", "config": 5}',
        b'{"ask": "started", "config": "\\u2014"}',
        b'{"ask": "hand_over", "limit": -1, "jobs": []}', b'{"ask": "hand_over", "limit": 1, "jobs": 5}',
        b'{"ask": "start", "note": [1]}',
    ],
)  # fmt: skip
def test_one_that_asks_what_cannot_be_is_ended(text: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    assert Listens().hears(text) == [signal.SIGKILL]
    assert "is ended, because its request cannot be answered" in capfd.readouterr().err


@pytest.mark.parametrize(
    "said", ["[1]", "null", '"x"', '{"error": null}', "[" * 50_000, "x" * 200_000], ids=lambda said: said[:20]
)
def test_a_reason_that_is_none_is_told_as_such(said: str, tmp_path: Path) -> None:
    """Only so much of it is read: a process that it has started may write without end."""
    (tmp_path / "said").write_text(said)
    code = f"""fd = int(os.environ["REPORTS"])
os.set_blocking(fd, False)
os.write(fd, open({str(tmp_path / "said")!r}, "rb").read())"""
    near, far = socket.socketpair()
    with far:
        one = Upgrade(doing(tmp_path, code), [], {}, Command(near), "REPORTS")
        one.frontend.process.wait()
        one.failed(3)
        reason = receive(far)[0]["refused"]
    one.frontend.close()
    said = f"The new server ({tmp_path / 'python'}) ended with exit code 3 while starting; the server's log says why."
    assert reason == said


def test_a_pipe_that_is_written_without_end_is_not_read_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = Upgrade(doing(tmp_path, "pass"), [], {}, None, "REPORTS")
    one.frontend.process.wait()
    monkeypatch.setattr(os, "read", lambda fd, size: b" " * size)
    assert one.failed(3).endswith("the server's log says why.")
    assert module.MOST_REASON == 1 << 16
    one.frontend.close()
