"""Output of `msx-serve predict` and `chat` for a model's answers."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from msx_client import MsxError
from msx_frontend.cli.main import main
from msx_frontend.cli.subcommands import asking
from msx_frontend.cli.subcommands.answers import PrintedAnswer

HOSTILE = "a\x1b]0;title\x07\x9b31m\r\nä"
SHOWN = "a\\x1b]0;title\\x07\\x9b31m\\r\nä"


class Stdout(io.TextIOWrapper):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), "utf-8", newline="")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def said(self) -> bytes:
        self.flush()
        raw: Any = self.buffer
        return bytes(raw.getvalue())


def stdout(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> Stdout:
    made = Stdout(terminal=terminal)
    monkeypatch.setattr("sys.stdout", made)
    return made


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_terminal_obeys_nothing(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """However the answer is cut, also within a letter."""
    screen, data, answer = stdout(monkeypatch, terminal=True), HOSTILE.encode(), PrintedAnswer()
    for start in range(0, len(data), size):
        answer.data(data[start : start + size])
    answer.end()
    assert screen.said.decode() == f"{SHOWN}\n"


def test_bytes_that_are_not_text_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, answer = stdout(monkeypatch, terminal=True), PrintedAnswer()
    answer.data(b"\x93NUMPY\xff\xc3")
    answer.end()
    assert screen.said == b"\\x93NUMPY\\xff\\xc3\n"


def test_a_pipe_gets_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, answer = stdout(monkeypatch, terminal=False), PrintedAnswer()
    answer.data(HOSTILE.encode() + b"\xff")
    answer.end()
    assert pipe.said == HOSTILE.encode() + b"\xff"


class FakeClient:
    """Answers what it was asked with HOSTILE, and keeps it."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, str]] = []

    def __enter__(self) -> FakeClient:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def stream(self, name: str, body: bytes, *, headers: dict[str, str], **options: Any) -> Iterator[bytes]:
        self.asked.append((body, headers["content-type"]))
        yield HOSTILE.encode()

    def chat_stream(self, name: str, messages: object, **options: Any) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(text=HOSTILE)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    made = FakeClient()
    monkeypatch.setattr(asking, "Client", lambda *args, **options: made)
    return made


def typed(*words: str, sent: str = "") -> Result:
    return CliRunner().invoke(main, [*words, "--url", "http://127.0.0.1:1"], input=sent)


@pytest.mark.parametrize("body", ['{"text": "ä"}', " [1, 2]", '"text"'])
def test_json_in_place_of_a_file(client: FakeClient, body: str) -> None:
    assert typed("predict", "m", body).exit_code == 0
    assert client.asked == [(body.encode(), "application/json")]


def test_a_file_of_that_name_goes_first(client: FakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("[1]").write_text(json.dumps({"a": 1}))
    Path("x.txt").write_text("words")
    assert typed("predict", "m", "[1]").exit_code == 0
    assert typed("predict", "m", "x.txt").exit_code == 0
    assert typed("predict", "m", sent="3").exit_code == 0
    assert client.asked == [(b'{"a": 1}', "application/json"), (b"words", "text/plain"), (b"3", "application/json")]


def test_json_that_is_none(client: FakeClient) -> None:
    result = typed("predict", "m", '{"text": }')
    assert result.exit_code == 2
    assert """'{"text": }' is neither a file nor JSON: Expecting value""" in result.stderr
    assert "No such file" in typed("predict", "m", "text").stderr


def test_what_the_server_refuses_is_shown_alike(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object, **options: object) -> Iterator[bytes]:
        raise MsxError("no \x1b[2J")
        yield b""

    monkeypatch.setattr(client, "stream", refused)
    assert typed("predict", "m", "{}").stderr == "Error: no \\x1b[2J\n"


def test_chat_to_a_pipe(client: FakeClient) -> None:
    assert typed("chat", "m", sent="hello\n").stdout_bytes == f"{HOSTILE}\n".encode()
