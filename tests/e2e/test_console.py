"""The console of a running server: its stream, as a browser reads it, until the server ends."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.server import RunningServer, pack_service, run_server

CONFIG = "minWorkers: 1\nmaxWorkers: 1\n"


def events(stream: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in stream.iter_lines():
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield name, json.loads(line[6:])


def until(stream: Iterator[tuple[str, dict[str, Any]]], part: str, wanted: Any) -> dict[str, Any]:
    """The value of the part, once it is as wanted."""
    for _, told in stream:
        value = told["set"].get(part)
        if value is not None and wanted(value):
            found: dict[str, Any] = value
            return found
    raise AssertionError(f"the stream ended before {part} was as wanted")


def pids(version: dict[str, Any]) -> list[int]:
    return [worker["pid"] for worker in version["workers"] if worker["status"] == "READY"]


def test_a_worker_that_is_killed_is_seen_live_until_the_server_ends(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    pack_service("echo", tmp_path / "store", config=CONFIG)
    with run_server(tmp_path, "--models", "echo.mar", tokens=True) as server:
        page = httpx.get(f"{server.info['management']}/console")
        assert (page.status_code, b'data-keys="on"' in page.content) == (200, True)
        assert httpx.get(f"{server.info['management']}/console/events").status_code == 400
        assert server.inference.get("/console").status_code == 404
        with server.management.stream("GET", "/console/events") as reply:
            stream = events(reply)
            version = until(stream, "version echo 1.0", pids)
            (pid,) = pids(version)
            os.kill(pid, signal.SIGKILL)
            until(stream, "version echo 1.0", lambda value: pids(value) not in ([], [pid]))
            _look_at(server)
            server.process.send_signal(signal.SIGTERM)
            for _ in stream:  # it ends with the server, and not with a broken connection
                continue
        assert server.process.wait(60) == 0


def _look_at(server: RunningServer) -> None:
    """A failed request is a trace, and what is said of the worker that was killed is among the lines."""
    assert server.inference.post("/predictions/echo", content=b"hello").status_code == 200
    traces = server.management.get("/console/traces").json()
    (slow,) = [trace for trace in traces["slow"] if trace["model"] == "echo"][:1]
    phases = [slow[name] for name in ("parse", "queue", "wait", "worker", "reply")]
    assert abs(sum(phases) - slow["total"]) < 0.1
    lines = server.management.get("/console/lines", params={"model": "echo", "version": "1.0"}).json()["lines"]
    assert any("Backend worker" in line["text"] or "ended" in line["text"] for line in lines)
