"""Start and end: running requests finish, new ones are refused, nothing is left."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.server import (
    WATCHDOG,
    RunningServer,
    client_of,
    new_store,
    pack_service,
    run_server,
    server_environment,
    start_server,
    wait_until,
)
from tests.phrases import worker_died
from tests.processes import alive, children_of

pytestmark = pytest.mark.e2e


CLOSES = """
import pathlib

from msx_sdk import Handler


class Closes(Handler):
    def close(self):
        pathlib.Path({mark!r}).write_text("closed")
"""


class SlowRequest(threading.Thread):
    """A request to the `slow` handler, whose progress its mark file tells; it runs until it is let go, or `seconds`."""

    def __init__(self, server: RunningServer, mark: Path, seconds: float = 600.0, model: str = "slow") -> None:
        super().__init__()
        self._server, self._mark, self._seconds, self._model = server, mark, seconds, model
        self.reply: httpx.Response | Exception | None = None
        self.start()

    def run(self) -> None:
        order = {"seconds": self._seconds, "mark": str(self._mark), "hold": f"{self._mark}-goes"}
        with client_of(self._server.info["inference"], None) as client:
            try:
                self.reply = client.post(f"/predictions/{self._model}", json=order)
            except httpx.TransportError as error:
                self.reply = error

    def let_go(self) -> None:
        Path(f"{self._mark}-goes").touch()

    def wait_started(self) -> None:
        wait_until(lambda: "started" in self.marks(), "the request runs")

    def marks(self) -> list[str]:
        return self._mark.read_text().split() if self._mark.exists() else []

    def status(self) -> Any:
        self.join()
        return self.reply.status_code if isinstance(self.reply, httpx.Response) else self.reply


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    pack_service("slow", new_store(tmp_path), config="minWorkers: 1\nmaxWorkers: 1\n")
    with run_server(tmp_path, "--models", "slow.mar") as running:
        yield running


def readiness(server: RunningServer) -> int:
    return server.inference.get("/readyz").status_code


def test_unregistering_lets_running_and_queued_requests_finish(server: RunningServer, tmp_path: Path) -> None:
    running = SlowRequest(server, tmp_path / "running")
    running.wait_started()
    queued = SlowRequest(server, tmp_path / "queued", 0.0)
    wait_until(lambda: server.describe("slow")["jobQueueStatus"]["pendingRequests"] == 1, "one waits")
    leaving = unregistering(server)
    assert running.marks() == ["started"]
    running.let_go()
    assert (running.status(), queued.status()) == (200, 200)
    leaving.join()
    assert server.management.get("/models/slow").status_code == 404


def unregistering(server: RunningServer) -> threading.Thread:
    """The request ends when the version has ended; new requests find no model from now on."""
    leaving = threading.Thread(target=server.management.delete, args=("/models/slow",))
    leaving.start()
    with client_of(server.info["management"], None) as client:
        wait_until(lambda: client.get("/models/slow").status_code == 404, "the model is being unregistered")
    return leaving


def test_requests_that_outlast_the_drain_of_a_version_fail(tmp_path: Path) -> None:
    config = "minWorkers: 1\nmaxWorkers: 1\nresponseTimeout: 1\n"
    pack_service("slow_sync_blocking", new_store(tmp_path), config=config, model="slow")
    with run_server(tmp_path, "--models", "slow.mar") as server:
        running = SlowRequest(server, tmp_path / "running")
        running.wait_started()
        assert server.management.delete("/models/slow").status_code == 200
        assert running.status() == 500
        assert isinstance(running.reply, httpx.Response)
        assert running.reply.json()["message"].startswith(worker_died(""))


def test_sigterm_finishes_what_runs(server: RunningServer, tmp_path: Path) -> None:
    running = SlowRequest(server, tmp_path / "running")
    running.wait_started()
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: readiness(server) == 503, "readiness says so")
    assert running.marks() == ["started"]
    assert "shutting down" in server.inference.get("/readyz").text
    assert server.inference.get("/livez").status_code == 200
    refused = server.predict("slow", {"seconds": 0})
    assert (refused.status_code, refused.json()["type"]) == (503, "ServiceUnavailableException")
    assert "shutting down" in refused.json()["message"]
    changed = server.management.put("/models/slow?min_worker=2&synchronous=true")
    assert (changed.status_code, "shutting down" in changed.text) == (503, True)
    running.let_go()
    assert running.status() == 200
    assert server.process.wait(WATCHDOG) == 0


def test_a_second_sigterm_does_not_wait(tmp_path: Path) -> None:
    pack_service("slow_sync_blocking", new_store(tmp_path), model="slow")
    with run_server(tmp_path, "--models", "slow.mar") as server:
        running = SlowRequest(server, tmp_path / "running")
        running.wait_started()
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: readiness(server) == 503, "the first one has come")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(WATCHDOG) == 0
        assert running.status() == 503
        assert isinstance(running.reply, httpx.Response)
        assert "could not wait any longer" in running.reply.json()["message"]


def test_the_drain_has_a_limit(tmp_path: Path) -> None:
    pack_service("slow_sync_blocking", new_store(tmp_path), model="slow")
    with run_server(tmp_path, "--models", "slow.mar", properties="drain_timeout=0.2\n") as server:
        running = SlowRequest(server, tmp_path / "running")
        running.wait_started()
        assert server.terminate() == 0
        assert running.status() == 503
        assert isinstance(running.reply, httpx.Response)
        assert "could not wait any longer" in running.reply.json()["message"]


def test_unregistering_and_sigterm_at_once(server: RunningServer, tmp_path: Path) -> None:
    """A version that is being unregistered is waited for like the others."""
    running = SlowRequest(server, tmp_path / "running")
    running.wait_started()
    leaving = unregistering(server)
    assert running.marks() == ["started"]
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: readiness(server) == 503, "readiness says so")
    running.let_go()
    assert server.process.wait(WATCHDOG) == 0
    assert running.status() == 200
    leaving.join()


def test_handlers_are_closed(tmp_path: Path) -> None:
    folder = new_store(tmp_path) / "closes"
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "h.py").write_text(CLOSES.format(mark=str(tmp_path / "mark")))
    (folder / "MAR-INF" / "MANIFEST.json").write_text('{"model": {"modelName": "closes", "handler": "h.py"}}')
    with run_server(tmp_path, "--models", "closes"):
        pass
    assert (tmp_path / "mark").read_text() == "closed"


def test_sigint_ends_it_too(server: RunningServer) -> None:
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(WATCHDOG) == 0


def test_sigterm_while_models_load(tmp_path: Path) -> None:
    folder = new_store(tmp_path) / "never"
    (folder / "MAR-INF").mkdir(parents=True)
    mark = tmp_path / "loading"
    (folder / "h.py").write_text(f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(600)\n")
    (folder / "MAR-INF" / "MANIFEST.json").write_text('{"model": {"modelName": "never", "handler": "h.py"}}')
    with run_server(tmp_path, "--models", "never", ready=False) as server:
        wait_until(mark.exists, "the model is loading")
        reply = server.inference.get("/readyz")
        assert (reply.status_code, "never" in reply.text) == (503, True)
        assert server.inference.get("/ping").status_code == 200
        assert server.describe("never")["state"] == "LOADING"
        assert server.terminate() == 0


def test_nothing_is_left_of_tokens_and_folders(tmp_path: Path) -> None:
    pack_service("echo", store := new_store(tmp_path))
    with run_server(tmp_path, "--models", "echo.mar", tokens=True) as server:
        assert (tmp_path / "key_file.json").stat().st_mode & 0o777 == 0o600
        assert server.predict("echo", b"x").status_code == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.properties",
        "index",
        "logs",  # TorchServe's snapshots
        "server.log",
        "store",
        "temp",
    ]
    assert not list((tmp_path / "index").rglob("*.json"))
    left = sorted(path.name for path in (store / ".msx").iterdir())
    assert left == ["models", "server.lock", "state.db"]


def test_sigkill_leaves_no_orphan(tmp_path: Path) -> None:
    pack_service("slow", new_store(tmp_path))
    server = start_server(tmp_path, "--models", "slow.mar")
    server.wait_ready()
    running = SlowRequest(server, tmp_path / "running")
    running.wait_started()
    workers = children_of(server.process.pid, recursive=True)
    assert workers
    server.kill()
    server.close()
    assert isinstance(running.status(), httpx.TransportError)
    wait_until(lambda: not alive(workers), "no worker is left")
    state = tmp_path / "store" / ".msx"
    assert {"run", "server.json", "status.sock"} <= {path.name for path in state.iterdir()}
    command = [sys.executable, "-m", "msx_frontend.cli.main", "doctor", "--model-store", str(tmp_path / "store")]
    env = server_environment(tmp_path)
    told = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60).stdout
    assert f"removed what a killed server had in {state}" in " ".join(told.split())
    assert {path.name for path in state.iterdir()} == {"models", "server.lock", "state.db"}
    assert not list((tmp_path / "temp").iterdir())
    assert not list((tmp_path / "index").rglob("*.json"))
