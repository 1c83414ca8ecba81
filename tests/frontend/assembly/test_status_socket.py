"""The socket that --status reads needs no key, and only the server's user can read it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_frontend.assembly.status_socket import Describe, Status, StatusSocket, ask

DESCRIBED = [{"modelName": "echo", "modelVersion": "1.0", "state": "READY", "workers": []}]


def long_folder(tmp_path: Path) -> Path:
    """Beyond the 107 bytes that a socket's name may have."""
    folder = tmp_path.joinpath(*(letter * 40 for letter in "abc"))
    folder.mkdir(parents=True)
    return folder


def test_it_answers_with_what_is_described_now(tmp_path: Path) -> None:
    described, reasons = list[dict[str, Any]](), list[str]()
    with served(long_folder(tmp_path) / "status.sock", lambda: Status(described, reasons)) as (path, started):
        assert started
        assert ask(path) == Status([])
        described += DESCRIBED
        reasons.append("model n could not be loaded")
        assert ask(path) == Status(DESCRIBED, ["model n could not be loaded"])
    assert not path.exists()


def test_only_its_user_opens_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with served(tmp_path / "status.sock") as (path, _):
            mode = path.stat().st_mode
    finally:
        os.umask(before)
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)


def test_the_file_of_a_server_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "status.sock"))
    with pytest.raises(ConnectionRefusedError):
        ask(tmp_path / "status.sock")
    with served(tmp_path / "status.sock", lambda: Status(DESCRIBED)) as (path, _):
        assert ask(path) == Status(DESCRIBED)


def test_a_folder_that_takes_no_socket_is_named_and_the_server_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(tmp_path / "gone" / "status.sock") as (_, started):
        assert not started
    assert "gone/status.sock cannot be made: No such file or directory. msx-serve --status" in caplog.text


@pytest.mark.parametrize("said", [b"", b"{", b"{}", b"[]"])
def test_what_is_not_an_answer(tmp_path: Path, said: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        answered_with(tmp_path, said)


def test_an_answer_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_frontend.assembly.status_socket.MOST_BYTES", 1 << 20)
    with pytest.raises(ValueError, match=r"status\.sock sent more than 1 MiB"):
        answered_with(tmp_path, b" " * ((1 << 20) + 1))


def answered_with(tmp_path: Path, said: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "status.sock"))
        listening.listen()

        def answer() -> None:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            ask(tmp_path / "status.sock")
        finally:
            thread.join()


@contextlib.contextmanager
def served(path: Path, describe: Describe = lambda: Status([])) -> Iterator[tuple[Path, bool]]:
    """On a loop of its own; and whether it could be started."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    one = StatusSocket(path)
    try:
        yield path, asyncio.run_coroutine_threadsafe(one.start(describe), loop).result()
        loop.call_soon_threadsafe(one.close)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
