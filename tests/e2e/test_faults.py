"""Workers and servers that die: who waited is told at once why, and the model serves again."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import RunningServer, client_of, new_store, pack_service, run_server, wait_until
from tests.e2e.traffic import traffic
from tests.phrases import worker_died

pytestmark = pytest.mark.e2e

FLAKY = """
import pathlib

if not pathlib.Path({mark!r}).exists():
    raise RuntimeError("the weights are not there yet")


def handle(data, context):
    return [row["body"] for row in data]
"""

COUNTS_AND_CRASHES = """
import os


def handle(data, context):
    with open({mark!r}, "a") as file:
        file.write(data[0]["body"].decode() + "\\n")
    if data[0]["body"] == b"crash":
        os.abort()
    return ["fine" for _ in data]
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    store = new_store(tmp_path)
    pack_service("slow", store, config="minWorkers: 1\nmaxWorkers: 1\n")
    pack_service("echo", store, config="minWorkers: 2\nmaxWorkers: 2\n")
    with run_server(tmp_path, "--models", "all") as running:
        yield running


def folder_model(folder: Path, code: str, config: str) -> Path:
    model = new_store(folder) / "m"
    (model / "MAR-INF").mkdir(parents=True)
    (model / "h.py").write_text(code)
    (model / "config.yaml").write_text(config)
    manifest = '{"model": {"modelName": "m", "handler": "h.py", "configFile": "config.yaml"}}'
    (model / "MAR-INF" / "MANIFEST.json").write_text(manifest)
    return model


def ask(server: RunningServer, model: str, content: Any) -> tuple[int, str]:
    with client_of(server.info["inference"], None) as client:
        reply = client.post(f"/predictions/{model}", json=content)
        return reply.status_code, reply.text if reply.status_code == 200 else reply.json()["message"]


def test_sigkill_among_a_hundred_requests(server: RunningServer) -> None:
    """The running one learns the cause; the others are served by the next generation.

    So is the one that waits in the socket behind it: batches are short enough for that.
    """
    first = server.describe("slow")["workers"][0]

    def ask_one(number: int) -> tuple[int, str]:
        reply = server.predict("slow", {"seconds": 0.001})  # one pool of connections: a client each would be too slow
        return reply.status_code, "" if reply.status_code == 200 else reply.json()["message"]

    def in_the_middle() -> bool:
        done = sum(answer.done() for answer in answers)
        return done >= 5 and server.describe("slow")["jobQueueStatus"]["pendingRequests"] >= 10

    with ThreadPoolExecutor(100) as clients:
        answers = [clients.submit(ask_one, number) for number in range(100)]
        wait_until(in_the_middle, "some are answered and many wait")
        os.kill(first["pid"], signal.SIGKILL)
        found = Counter(answer.result() for answer in answers)
    served = sum(number for (status, _), number in found.items() if status == 200)
    lost = [answer for answer in found if answer[0] != 200]
    assert served >= 99
    for status, message in lost:
        assert status == 507
        assert message == worker_died(f"Rank 0 (pid {first['pid']}) was ended by signal 9 (SIGKILL).")

    def worker() -> tuple[Any, ...]:
        return tuple(server.describe("slow")["workers"][0][member] for member in ("id", "generation", "status"))

    wait_until(lambda: worker() == (first["id"], 2, "READY"), "the next generation serves", server.tail)
    assert server.describe("slow")["state"] == "READY"
    assert server.inference.get("/readyz").status_code == 200


def test_one_of_two_workers_dies(server: RunningServer) -> None:
    """The other one serves on, the model is DEGRADED meanwhile, never away."""
    with traffic(server, "echo") as clients:
        server.kill_worker(server.worker_pids("echo")[0], "echo")
    wait_until(lambda: _states(server)[-1:] == ["model echo 1.0: DEGRADED -> READY"], "the log has its return")
    assert _states(server)[-2] == "model echo 1.0: READY -> DEGRADED"
    assert len(clients.failures) <= 1, "only a request that was running on it"


def _states(server: RunningServer) -> list[str]:
    return [line["message"] for line in server.log_lines() if "model echo 1.0:" in line.get("message", "")]


def test_a_model_that_never_loads(tmp_path: Path) -> None:
    """Given up after maxRetryTimeoutInSec, with its reason in every place; scaling it revives it."""
    mark = tmp_path / "weights"
    folder_model(tmp_path, FLAKY.format(mark=str(mark)), "maxRetryTimeoutInSec: 1\nminWorkers: 1\nmaxWorkers: 1\n")
    with run_server(tmp_path, "--models", "m", ready=False) as server:
        wait_until(lambda: server.describe("m")["state"] == "FAILED", "it is given up", server.tail)
        described = server.describe("m")
        assert "the weights are not there yet" in described["reason"]
        assert "RuntimeError" in described["traceback"]
        assert described["workers"][0]["status"] == "FAILED"
        assert described["workers"][0]["generation"] >= 2
        ping = server.inference.get("/ping")
        assert (ping.status_code, ping.json()) == (500, {"status": "Unhealthy"})
        ready = server.inference.get("/readyz")
        assert (ready.status_code, "m" in ready.json()["status"]) == (503, True)
        status, message = ask(server, "m", "x")
        assert (status, "the weights are not there yet" in message) == (503, True)
        mark.touch()
        assert server.management.put("/models/m?min_worker=1&synchronous=true").status_code == 200
        assert server.describe("m")["state"] == "READY"
        assert "reason" not in server.describe("m")
        assert server.inference.get("/readyz").status_code == 200
        assert server.inference.get("/ping").status_code == 200
        assert ask(server, "m", "x")[0] == 200


def test_a_model_that_loads_at_the_second_try(tmp_path: Path) -> None:
    mark = tmp_path / "weights"
    folder_model(tmp_path, FLAKY.format(mark=str(mark)), "minWorkers: 1\nmaxWorkers: 1\n")
    with run_server(tmp_path, "--models", "m", ready=False) as server:
        wait_until(lambda: server.describe("m")["workers"][0]["generation"] >= 2, "it has failed once")
        status, message = ask(server, "m", "x")
        assert (status, message.count("\n")) == (503, 0)
        assert message.endswith("tried again: RuntimeError: the weights are not there yet")
        mark.touch()
        server.wait_ready()
        assert ask(server, "m", "x") == (200, "x")


def test_a_model_whose_cache_is_deleted_while_it_runs(tmp_path: Path) -> None:
    """Its next worker has it unpacked again; where the archive is gone, too, who asks is told so at once."""
    archive = pack_service("echo", new_store(tmp_path), config="minWorkers: 1\nmaxWorkers: 1\n")
    with run_server(tmp_path, "--models", "echo.mar") as server:
        (digest,) = server.unpacked()
        shutil.rmtree(server.store / ".msx" / "models" / digest)
        server.kill_worker(server.worker_pids("echo")[0], "echo")
        assert ask(server, "echo", "x") == (200, "x")
        warnings = [line["message"] for line in server.log_lines() if line.get("level") == "WARNING"]
        assert any("was changed or removed" in message and "unpacked again" in message for message in warnings)
        away = archive.rename(tmp_path / "away.mar")
        shutil.rmtree(server.store / ".msx" / "models")
        os.kill(server.worker_pids("echo")[0], signal.SIGKILL)
        wait_until(lambda: ask(server, "echo", "x")[0] == 503, "it is noticed", server.tail)
        message = ask(server, "echo", "x")[1]
        assert "its last load failed" in message
        assert "The unpacked files of echo.mar were changed or removed" in message
        assert str(tmp_path) not in message
        away.rename(archive)
        server.wait_ready()
        assert ask(server, "echo", "x") == (200, "x")


def test_waiting_requests_learn_that_it_does_not_load(tmp_path: Path) -> None:
    folder_model(tmp_path, FLAKY.format(mark="/nowhere"), "maxRetryTimeoutInSec: 1\nminWorkers: 1\nmaxWorkers: 1\n")
    with run_server(tmp_path, "--models", "m", ready=False) as server:
        status, message = ask(server, "m", "x")
        assert status == 503
        assert "the weights are not there yet" in message
        assert ask(server, "m", "x")[0] == 503


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGSEGV])
def test_other_ways_to_lose_a_worker(server: RunningServer, number: signal.Signals) -> None:
    pid = server.worker_pids("slow")[0]
    os.kill(pid, number)
    wait_until(lambda: server.worker_pids("slow") not in ([], [pid]), "a new worker is there", server.tail)
    assert ask(server, "slow", {"seconds": 0})[0] == 200


def test_a_load_that_takes_too_long(tmp_path: Path) -> None:
    folder_model(tmp_path, "import time\n\ntime.sleep(600)\n", "startupTimeout: 1\n")
    with run_server(tmp_path) as server:
        reply = server.register(Path("m"))
        assert reply.status_code == 500
        assert "startupTimeout (1 s" in reply.json()["message"]
        assert server.management.get("/models/m").status_code == 404
