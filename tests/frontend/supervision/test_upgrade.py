"""An upgrade whose new frontend does not do its part."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from pathlib import Path

import pytest

from msx_frontend.supervision import frontend_process, upgrade
from msx_frontend.supervision.frontend_process import FRONTEND_FD, FrontendProcess
from msx_frontend.supervision.orders import Command
from msx_frontend.supervision.upgrade import Upgrade
from msx_frontend.supervision.wire import receive


def program(folder: Path, code: str) -> str:
    """An interpreter that does this, whatever it is asked."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\nimport os, time\n{code}\n")
    path.chmod(0o700)
    return str(path)


def test_a_frontend_that_does_not_come_up_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "START_LIMIT", 0.0)
    near, far = socket.socketpair()
    with far:
        one = Upgrade(program(tmp_path, "time.sleep(60)"), [], {}, Command(near), "REPORTS")
        assert one.seconds_left == 0
        one.give_up("It is late.")
        assert receive(far)[0] == {"refused": "It is late."}
    assert one.frontend.exit_code() == 137


def test_one_that_is_ready_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "START_LIMIT", 0.0)
    one = Upgrade(program(tmp_path, "time.sleep(60)"), [], {}, None, "REPORTS")
    one.ready()
    assert one.seconds_left is None
    one.give_up("")


def test_the_reason_is_read_though_another_process_holds_the_pipe(tmp_path: Path) -> None:
    """A process that the frontend started may go on when it has ended."""
    code = """fd = int(os.environ["REPORTS"])
if os.fork():
    os.write(fd, b'{"error": "no such key"}')
else:
    time.sleep(60)"""
    near, far = socket.socketpair()
    with far:
        one = Upgrade(program(tmp_path, code), [], {}, Command(near), "REPORTS")
        one.frontend.process.wait()
        one.failed(0)
        assert receive(far)[0] == {"refused": "no such key"}
    one.frontend.close()
    os.killpg(one.frontend.pid, signal.SIGKILL)


def test_the_rest_of_a_message_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontend_process, "PATIENCE", 0.05)
    code = f'os.write(int(os.environ["{FRONTEND_FD}"]), b"ab")\ntime.sleep(60)'
    frontend = FrontendProcess.start(program(tmp_path, code), [], {})
    assert select.select([frontend.connection], [], [], 30)[0]
    with pytest.raises(TimeoutError):
        receive(frontend.connection)
    frontend.signal(signal.SIGKILL)
    frontend.process.wait()
    frontend.close()
