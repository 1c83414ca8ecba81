"""The life of a worker: states, limits, restarts, and what becomes of its requests.

contract#workers
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_frontend.workers.backoff import Backoff
from tests.contract.torchserve.gates import Gates, gates_of
from tests.contract.torchserve.setup import Setup
from tests.contract.torchserve.shapes import assert_status
from tests.e2e.server import RunningServer, pack_service, wait_until
from tests.phrases import did_not_respond, worker_died

pytestmark = pytest.mark.e2e

BACK_OFF = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597]
MODELS = {
    "plain": "",
    "two": "minWorkers: 2\nmaxWorkers: 2",
    "waiting": "",
    "slow": "responseTimeout: 1",
    "given_up": "maxRetryTimeoutInSec: 0",
}


def prepare(store: Path) -> None:
    for model, config in MODELS.items():
        pack_service("ts/modes_gate", store, model=model, config=f"{config}\n")


SERVER = Setup(prepare=prepare, load=tuple(f"{model}.mar" for model in MODELS))


@pytest.fixture
def gates(server: RunningServer, tmp_path: Path) -> Iterator[Gates]:
    with gates_of(server, tmp_path) as gates:
        yield gates


def restarted(server: RunningServer, model: str, generation: int) -> None:
    def there() -> bool:
        (worker,) = server.describe(model)["workers"]
        return (worker["status"], worker["generation"]) == ("READY", generation)

    wait_until(there, f"generation {generation} of {model} serves", server.tail)


def wait_until_states(server: RunningServer, model: str, *states: str) -> None:
    reached = lambda: [worker["status"] for worker in server.describe(model)["workers"]] == list(states)  # noqa: E731
    wait_until(reached, f"the workers of {model} are {states}", server.tail)


def generation_of(server: RunningServer, model: str) -> int:
    number: int = server.describe(model)["workers"][0]["generation"]
    return number


# -- limits and deaths --


def test_the_table_of_pauses() -> None:
    """TorchServe's, but the first restart comes at once."""
    backoff = Backoff(1e9, clock=lambda: 0.0)
    assert [backoff.failed() for _ in BACK_OFF] == BACK_OFF
    assert backoff.failed() == BACK_OFF[-1]
    backoff.reset()
    assert [backoff.failed(), backoff.failed()] == BACK_OFF[:2]


def test_no_answer_within_the_response_timeout(gates: Gates) -> None:
    before = gates.server.describe("slow")["workers"][0]
    reply = gates.begin("slow", "a").result()
    assert (reply.status_code, reply.json()["type"]) == (500, "InternalServerException")
    expected = worker_died(did_not_respond("1 s"))
    assert reply.json()["message"] == expected
    restarted(gates.server, "slow", before["generation"] + 1)
    after = gates.server.describe("slow")["workers"][0]
    assert (after["id"], after["lastError"]) == (before["id"], expected.partition(". ")[2])
    assert after["pid"] != before["pid"]
    said = "Number or consecutive unsuccessful inference 1"
    wait_until(lambda: said in gates.server.log.read_text(), "it is counted", gates.server.tail)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGKILL, 507), (signal.SIGTERM, 500), (signal.SIGABRT, 500)], ids=lambda v: str(v)
)
def test_a_signal(gates: Gates, number: signal.Signals, status: int) -> None:
    """507 is for SIGKILL alone, the OOM killer's."""
    generation = generation_of(gates.server, "plain")
    running = gates.begin("plain", "a")
    (pid,) = gates.server.worker_pids("plain")
    os.kill(pid, number)
    reply = running.result()
    assert (reply.status_code, reply.json()["code"]) == (status, status)
    words = worker_died(f"Rank 0 (pid {pid}) was ended by signal {number.value} ({number.name}).")
    assert reply.json()["message"].startswith(words)
    restarted(gates.server, "plain", generation + 1)
    assert gates.ask("plain", "b").status_code == 200


def test_an_exit(gates: Gates) -> None:
    generation = generation_of(gates.server, "plain")
    reply = gates.ask("plain", "a", crash=3)
    assert reply.status_code == 500
    assert reply.json()["message"].startswith(worker_died("Rank 0 (pid "))
    assert "exited with code 3" in reply.json()["message"]
    restarted(gates.server, "plain", generation + 1)
    assert gates.order() == ["a"], "what may be the cause is never run again"


def test_what_waits_is_served_by_the_next_one(gates: Gates) -> None:
    running = gates.begin("waiting", "a")
    waiting = [gates.queue("waiting", name) for name in "bcd"]
    (pid,) = gates.server.worker_pids("waiting")
    os.kill(pid, signal.SIGKILL)
    assert running.result().status_code == 507
    assert [future.result().status_code for future in waiting] == [200] * 3
    assert gates.order() == ["a", "b", "c", "d"]


def test_one_of_two_dies(gates: Gates) -> None:
    """The other one serves on, and health does not suffer."""
    running = gates.begin("two", "a")
    (pid,) = {worker["pid"] for worker in gates.server.describe("two")["workers"]} - {
        gates.ask("two", "b").json()["pid"]
    }
    os.kill(pid, signal.SIGKILL)
    assert running.result().status_code == 507
    assert gates.ask("two", "c").status_code == 200
    assert_status(gates.server.inference.get("/ping"), 200, "Healthy")


# -- giving up --


def test_a_worker_that_is_given_up(gates: Gates) -> None:
    """Unhealthy until it is scaled or registered again."""
    assert gates.ask("given_up", "a", crash=3).status_code == 500
    wait_until(lambda: gates.server.describe("given_up")["state"] == "FAILED", "it is given up", gates.server.tail)
    assert_status(gates.server.inference.get("/ping"), 500, "Unhealthy")
    refused = gates.ask("given_up", "b")
    assert (refused.status_code, refused.json()["type"]) == (503, "ServiceUnavailableException")
    assert "exited with code 3" in refused.json()["message"]
    scaled = gates.server.management.put("/models/given_up?min_worker=1&synchronous=true")
    assert_status(scaled, 200, "Workers scaled to 1 for model: given_up")
    assert gates.ask("given_up", "c").status_code == 200
    assert_status(gates.server.inference.get("/ping"), 200, "Healthy")


# -- scaling down --


def test_scaling_down_lets_requests_finish(gates: Gates) -> None:
    """TorchServe kills the worker. The newest leaves first; UNLOADING is TorchServe's word."""
    server = gates.server
    archive = pack_service("ts/modes_gate", server.store, model="shrinking", config="responseTimeout: 100\n")
    assert server.register(archive, initial_workers=2).status_code == 200
    running = {name: gates.begin("shrinking", name) for name in "ab"}
    kept, leaving = server.describe("shrinking")["workers"]
    assert int(kept["id"]) < int(leaving["id"])
    assert server.management.put("/models/shrinking?min_worker=1&max_worker=1").status_code == 202
    wait_until_states(server, "shrinking", "READY", "UNLOADING")
    gates.go("a", "b")
    assert {future.result().json()["pid"] for future in running.values()} == {kept["pid"], leaving["pid"]}
    wait_until_states(server, "shrinking", "READY")
    assert server.management.delete("/models/shrinking").status_code == 200


def test_a_model_without_workers_is_healthy(gates: Gates) -> None:
    server = gates.server
    archive = pack_service("ts/modes_gate", server.store, model="idle")
    assert server.register(archive, initial_workers=1).status_code == 200
    assert server.management.put("/models/idle?min_worker=0&max_worker=0&synchronous=true").status_code == 200
    assert_status(server.inference.get("/ping"), 200, "Healthy")
    assert gates.ask("idle", "a").status_code == 503
    assert server.management.delete("/models/idle").status_code == 200


def test_worker_numbers(server: RunningServer) -> None:
    """From 9000 on, in the order in which the workers were started; describe shows when each was."""
    numbers = [int(worker["id"]) for model in MODELS for worker in server.describe(model)["workers"]]
    assert min(numbers) >= 9000
    assert len(set(numbers)) == len(numbers) == 6
