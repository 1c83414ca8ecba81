"""Logs of the server: JSON lines, or readable ones on a terminal; ids on every line of a request; no keys."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from tests.e2e.server import (
    FREE_PORTS,
    RunningServer,
    new_store,
    pack_service,
    run_server,
    server_environment,
    wait_until,
)
from tests.lines import whole_lines

pytestmark = pytest.mark.e2e

TALKS = """
import logging

from msx_sdk import Handler


class Talks(Handler):
    def inference(self, inputs):
        logging.getLogger("mine").warning("by logging %s", inputs[0]["body"].decode())
        self.context.logger.info("by the context")
        if inputs[0]["body"] == b"bad":
            raise ValueError("no luck")
        return ["said" for _ in inputs]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("logs")
    model = new_store(folder) / "talks"
    (model / "MAR-INF").mkdir(parents=True)
    (model / "h.py").write_text(TALKS)
    (model / "MAR-INF" / "MANIFEST.json").write_text('{"model": {"modelName": "talks", "handler": "h.py"}}')
    with run_server(folder, "--models", "talks", tokens=True) as running:
        yield running


def lines_of(server: RunningServer, request_id: str, number: int) -> list[dict[str, Any]]:
    def found() -> list[dict[str, Any]]:
        return [line for line in server.log_lines() if line.get("request_id") == request_id]

    wait_until(lambda: len(found()) >= number, f"{number} lines of {request_id} are logged", server.tail)
    return found()


def test_json_lines(server: RunningServer) -> None:
    for line in whole_lines(server.log):
        assert isinstance(json.loads(line), dict)
    started = next(line for line in server.log_lines() if "Model server started" in line.get("message", ""))
    assert server.info["inference"] in started["message"]
    assert server.info["key_file"] in started["message"]


def test_lines_of_a_request_carry_its_id(server: RunningServer) -> None:
    server.predict("talks", b"hello", headers={"x-request-id": "one"})
    lines = lines_of(server, "one", 3)
    said = {line["message"]: line for line in lines if "message" in line}
    assert set(said) == {"by logging hello", "by the context"}
    line = said["by logging hello"]
    assert (line["level"], line["model"], line["version"], line["rank"]) == ("WARNING", "talks", "1.0", 0)
    access = next(line for line in lines if line["logger"] == "msx.access")
    assert (access["method"], access["path"], access["status"]) == ("POST", "/predictions/talks", 200)
    assert access["ms"] >= 0


def test_the_traceback_of_a_request_carries_its_id(server: RunningServer) -> None:
    assert server.predict("talks", b"bad", headers={"x-request-id": "two"}).status_code == 503
    lines = lines_of(server, "two", 4)
    assert any("ValueError: no luck" in str(line) for line in lines)
    assert [line["status"] for line in lines if line["logger"] == "msx.access"] == [503]


def test_requests_that_never_reach_a_handler_are_logged(server: RunningServer) -> None:
    server.predict("absent", b"x", headers={"x-request-id": "three"})
    server.management.get("/models", headers={"x-request-id": "four"})
    assert [line["status"] for line in lines_of(server, "three", 1)] == [404]
    assert [line["path"] for line in lines_of(server, "four", 1)] == ["/models"]


def test_no_key_is_ever_logged(server: RunningServer) -> None:
    assert server.keys
    keys = [entry["key"] for entry in server.keys.values()]
    server.management.get("/token?type=inference", headers={"authorization": f"Bearer {keys[2]}"})
    server.predict("talks", b"x", headers={"authorization": "Bearer wrong", "x-request-id": "five"})
    lines_of(server, "five", 1)
    log = server.log.read_text()
    assert len(keys) == 3
    assert not [key for key in keys if key in log]


def test_readable_lines_on_a_terminal(tmp_path: Path) -> None:
    pack_service("echo", tmp_path)
    (tmp_path / "config.properties").write_text(FREE_PORTS)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "msx_frontend.cli.main", "--foreground", "--models", "echo.mar", "--dt"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, env=server_environment(tmp_path)
    )
    os.close(theirs)
    shown = ""
    try:
        while not all(text in shown for text in ("worker 9000 is ready", "LOADING -> READY", "  inference   http")):
            shown += os.read(ours, 65536).decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert re.search(r"^Model server started \(pid \d+\)\.\r$", shown, re.MULTILINE)
    assert re.search(r"^  inference   http://127", shown, re.MULTILINE)
    line = r"^\d\d:\d\d:\d\d\.\d{3} INFO     msx\.workers \[echo 1\.0 0\]: worker 9000 is ready"
    assert re.search(line, click.unstyle(shown), re.MULTILINE)
    assert "{" not in shown
