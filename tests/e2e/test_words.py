"""`msx-serve status`, `models`, `logs`, `predict`, `chat`, `scale`, `stop` on a real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server
from tests.forked import run_forked

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("words")
    for service in ("echo", "parrot"):
        pack_service(service, new_store(folder))
    with run_server(folder, "--models", "echo.mar", "parrot.mar", tokens=True) as running:
        yield running


def said(server: RunningServer, *words: str, given: str = "", code: int = 0) -> str:
    """Output of the command; its error if it must fail."""
    command = [sys.executable, "-m", "msx_frontend.cli.main", *words, "--model-store", str(server.store)]
    done = run_forked(command, input=given, cwd=server.folder)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def test_predict(server: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    assert json.loads(said(server, "predict", "echo", str(tmp_path / "x.json"))) == {"a": 1}
    assert said(server, "predict", "echo", given="hello") == "hello"
    assert "Model not found: nobody" in said(server, "predict", "nobody", given="x", code=1)


def test_chat(server: RunningServer) -> None:
    assert said(server, "chat", "parrot", given="one two\n\nthree\n").split() == ["one", "two", "three"]


def test_status_and_models(server: RunningServer) -> None:
    shown = json.loads(said(server, "status", "--json"))
    assert shown["well"]
    assert {one["modelName"] for one in shown["versions"]} == {"echo", "parrot"}
    found = {row["model"]: row for row in json.loads(said(server, "models", "--json"))}
    assert (found["echo"]["state"], found["echo"]["workers"]) == ("READY", "1/1")
    for text in (said(server, "models"), said(server, "status")):
        assert "echo" in text


def test_scale(server: RunningServer) -> None:
    assert said(server, "scale", "echo", "2") == "Workers scaled to 2 for model: echo\n"
    assert len(server.describe("echo")["workers"]) == 2
    assert "nobody" in said(server, "scale", "nobody", "1", code=1)


def test_logs_of_a_server_on_a_terminal(server: RunningServer) -> None:
    assert "writes its log to its terminal" in said(server, "logs", code=1)


def test_no_server(tmp_path: Path) -> None:
    for words, code in ((("stop",), 0), (("status",), 1), (("models",), 1), (("predict", "x"), 1)):
        command = [sys.executable, "-m", "msx_frontend.cli.main", *words, "--state-dir", str(tmp_path)]
        done = run_forked(command, input="", cwd=tmp_path)
        assert (done.returncode, "not currently running" in done.stdout + done.stderr) == (code, True)
