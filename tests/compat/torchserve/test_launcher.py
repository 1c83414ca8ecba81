"""`ts.launcher`, with a program that stands for `msx-serve`; tests/e2e/test_launcher.py has the real one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue

import pytest

from msx_torchserve.packages.ts import _following, launcher
from msx_torchserve.packages.ts._following import LogTail

SOON = 120.0

PROGRAM = """
import sys
with open("calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
sys.exit({code})
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return _program(tmp_path, monkeypatch, 0)


def _program(folder: Path, patch: pytest.MonkeyPatch, code: int) -> Path:
    (folder / "program.py").write_text(PROGRAM.format(code=code))
    patch.setattr(launcher, "PROGRAM", (sys.executable, str(folder / "program.py")))
    return folder / "calls"


def test_a_store_that_is_not_there(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert launcher.start("absent").get_nowait() is None
    assert capsys.readouterr().out == "--model-store directory not found: absent\n"
    assert calls.read_text().splitlines() == ["--stop"]


def test_the_command_line(calls: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    queue = launcher.start("store", "c.properties", True, "plugins", True, "all", True)
    assert calls.read_text().splitlines() == [
        "--stop --model-store store",
        "--stop",
        "--start --model-store store --ts-config c.properties --plugins-path plugins --models all "
        "--no-config-snapshots --disable-token-auth --enable-model-api",
    ]
    assert queue.maxsize == launcher.LINES
    calls.unlink()
    launcher.start()
    assert calls.read_text().splitlines() == ["--stop", "--start"]


def test_a_server_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _program(tmp_path, monkeypatch, 1)
    launcher.stop()
    with pytest.raises(subprocess.CalledProcessError):
        launcher.start()


class Server:
    """A log, and a process that counts as the server."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "msx.log"
        self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def say(self, text: str) -> None:
        with self.log.open("a") as file:
            file.write(text)

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(SOON)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.end()


def follow(server: Server, size: int = 100) -> tuple[Queue[str | None], LogTail]:
    queue: Queue[str | None] = Queue(size)
    follower = LogTail(server.log, server.process.pid, queue)
    follower.start()
    return queue, follower


def test_the_log_from_the_last_start_on(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    server.say("Model server started: old\nold\nModel server started: new\nfirst\nsec")
    queue, _ = follow(server)
    assert queue.get(timeout=SOON) == "first\n"
    server.say("ond\n")
    assert queue.get(timeout=SOON) == "second\n"
    server.say("last\n")
    server.end()
    assert [queue.get(timeout=SOON), queue.get(timeout=SOON)] == ["last\n", None]
    assert capfd.readouterr().out == "first\nsecond\nlast\n"


def test_a_start_that_is_too_long_ago(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only later lines are followed."""
    monkeypatch.setattr(_following, "LOOK_BACK", 4)
    (tmp_path / "msx.log").write_text("Model server started\nbefore\n")
    with (tmp_path / "msx.log").open("rb") as file:
        _following._behind_the_start(file)
        assert file.read() == b""


def test_a_log_that_is_moved_aside(server: Server) -> None:
    server.say("Model server started\none\n")
    queue, _ = follow(server)
    assert queue.get(timeout=SOON) == "one\n"
    server.say("two\n")
    server.log.rename(server.log.with_name("msx.log.1"))
    server.say("three\n")
    assert [queue.get(timeout=SOON), queue.get(timeout=SOON)] == ["two\n", "three\n"]


def test_a_queue_that_is_not_emptied(server: Server) -> None:
    """Lines that do not fit are left out; the end is always told."""
    server.say("Model server started\n" + "line\n" * 5)
    queue, follower = follow(server, size=2)
    server.end()
    follower.join(SOON)
    assert [queue.get(timeout=SOON), queue.get(timeout=SOON)] == ["line\n", None]


def test_registering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past any proxy; the reply is one that scripts can ask."""
    paths: list[str] = []

    class Management(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.send_response(409)
            self.end_headers()
            self.wfile.write(b'{"code": 409}')

        def log_message(self, *arguments: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Management) as listener:
        thread = threading.Thread(target=listener.handle_request)
        thread.start()
        monkeypatch.setattr(launcher, "MANAGEMENT", f"http://127.0.0.1:{listener.server_port}")
        monkeypatch.setitem(os.environ, "http_proxy", "http://127.0.0.1:1")
        reply = launcher.register_model("m", "m.mar")
        thread.join(SOON)
    assert (reply.status_code, reply.json()) == (409, {"code": 409})
    assert paths == ["/models?model_name=m&url=m.mar&initial_workers=1&synchronous=true"]
