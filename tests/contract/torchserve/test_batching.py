"""Queueing and batching. Handlers wait for files, so that the cases say what runs and what waits.

contract#batching
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.torchserve.gates import Gates, gates_of
from tests.contract.torchserve.setup import Setup
from tests.contract.torchserve.shapes import NO_WORKER, assert_error
from tests.e2e.server import RunningServer, pack_service, wait_until
from tests.retry import told_wait

pytestmark = pytest.mark.e2e

FOREVER = 600_000
"""ms: a case that waited for it would run into its watchdog."""
# A case that lets requests wait has a model of its own: behind batches that were short, one more is sent ahead.
MODELS = {
    "bounded": "jobQueueSize: 2",
    "fifo": "jobQueueSize: 10",
    "kinds": "batchSize: 4",
    "sharing": "batchSize: 4",
    "full": f"batchSize: 2\nmaxBatchDelay: {FOREVER}\nbatchingPolicy: fixed",
    "partial": "batchSize: 4\nmaxBatchDelay: 50\nbatchingPolicy: fixed",
    "alone": f"batchSize: 4\nmaxBatchDelay: {FOREVER}",
    "tickets": "useJobTicket: true\nbatchSize: 4\nminWorkers: 2\nmaxWorkers: 2",
    "impatient": "clientTimeoutInMills: 2000",
    "dying": "jobQueueSize: 5",
}
ASYNC = {
    "many": "asyncCommunication: true",
    "async_tickets": "asyncCommunication: true\nuseJobTicket: true\nmaxConcurrent: 2",
}


def prepare(store: Path) -> None:
    for model, config in MODELS.items():
        pack_service("ts/modes_gate", store, model=model, config=config)
    for model, config in ASYNC.items():
        pack_service("ts/modes_gate", store, model=model, config=config, function="coroutine")
    pack_service("ts/modes_gate", store, model="workerless")


SERVER = Setup(prepare=prepare, load=tuple(f"{model}.mar" for model in [*MODELS, *ASYNC]))


@pytest.fixture
def gates(server: RunningServer, tmp_path: Path) -> Iterator[Gates]:
    with gates_of(server, tmp_path) as gates:
        yield gates


def refusal(model: str, reason: str) -> tuple[int, str, str]:
    """TorchServe's text, then why."""
    return 503, "ServiceUnavailableException", f"{NO_WORKER.format(model)} ({reason})"


def test_without_a_worker(gates: Gates) -> None:
    assert gates.server.register(Path("workerless.mar"), initial_workers=0).status_code == 200
    text = NO_WORKER.format("workerless")
    assert_error(gates.ask("workerless", "a"), 503, "ServiceUnavailableException", text)
    reply = gates.server.management.get("/models/workerless?customized=true")
    assert (reply.status_code, "no worker to serve describe request" in reply.text) == (503, True)


def test_a_full_queue(gates: Gates) -> None:
    running = gates.begin("bounded", "a")
    assert gates.server.describe("bounded")["jobQueueStatus"] == {"remainingCapacity": 2, "pendingRequests": 0}
    waiting = [gates.queue("bounded", name) for name in ("b", "c")]
    assert gates.server.describe("bounded")["jobQueueStatus"] == {"remainingCapacity": 0, "pendingRequests": 2}
    reply = gates.ask("bounded", "d")
    assert_error(reply, *refusal("bounded", "the queue is full: jobQueueSize is 2"))
    assert told_wait(reply.headers)
    gates.go("a")
    assert [future.result().status_code for future in (running, *waiting)] == [200] * 3


def test_requests_are_taken_in_their_order(gates: Gates) -> None:
    futures = [gates.begin("fifo", "a"), *(gates.queue("fifo", name) for name in "bcde")]
    gates.go("a")
    assert [future.result().json()["batch"] for future in futures] == [["a"], ["b"], ["c"], ["d"], ["e"]]
    assert gates.order() == ["a", "b", "c", "d", "e"]


def test_a_description_is_a_batch_of_its_own(gates: Gates) -> None:
    running = gates.begin("kinds", "a")
    b = gates.queue("kinds", "b")
    described = gates.threads.submit(gates.server.management.get, "/models/kinds?customized=true")
    wait_until(lambda: gates.pending("kinds") == 2, "it waits", gates.server.tail)
    c, d = gates.queue("kinds", "c"), gates.queue("kinds", "d")
    gates.go("a")
    batches = [future.result().json()["batch"] for future in (running, b, c, d)]
    assert batches == [["a"], ["b"], ["c", "d"], ["c", "d"]]
    assert described.result().json()[0]["customizedMetadata"] == {"described": 1}


def test_a_full_batch_leaves_at_once(gates: Gates) -> None:
    first = gates.queue("full", "a")
    second = gates.ask("full", "b")
    assert [first.result().json()["batch"], second.json()["batch"]] == [["a", "b"], ["a", "b"]]


def test_a_partial_batch_leaves_after_the_delay(gates: Gates) -> None:
    assert gates.ask("partial", "a").json()["batch"] == ["a"]


def test_by_default_a_lone_request_does_not_pay_the_delay(gates: Gates) -> None:
    """Better than TorchServe's rule, which is `batchingPolicy: fixed`."""
    assert gates.ask("alone", "a").json()["batch"] == ["a"]


def test_what_waits_while_the_worker_is_busy_shares_a_batch(gates: Gates) -> None:
    running = gates.begin("sharing", "x")
    waiting = [gates.queue("sharing", name) for name in "pqrst"]
    gates.go("x")
    assert running.result().json()["batch"] == ["x"]
    assert [future.result().json()["batch"] for future in waiting] == [list("pqrs")] * 4 + [["t"]]


def test_job_tickets_are_idle_workers(gates: Gates) -> None:
    """Also where batches are larger: a request a worker."""
    running = [gates.begin("tickets", name) for name in "ab"]
    reason = "no job ticket is free: every worker is busy and useJobTicket is on"
    assert_error(gates.ask("tickets", "c"), *refusal("tickets", reason))
    gates.go("a")
    assert running[0].result().status_code == 200
    assert gates.ask("tickets", "d").status_code == 200
    gates.go("b")
    assert running[1].result().json()["pid"] != running[0].result().json()["pid"]


def test_job_tickets_of_an_async_handler_are_its_free_slots(gates: Gates) -> None:
    running = [gates.begin("async_tickets", name) for name in "ab"]
    assert gates.ask("async_tickets", "c").status_code == 503
    gates.go("a")
    assert running[0].result().status_code == 200
    assert gates.ask("async_tickets", "d").status_code == 200


def test_a_request_that_is_too_old_is_answered(gates: Gates) -> None:
    """TorchServe drops it without an answer. Running or waiting, and the worker goes on."""
    running = gates.begin("impatient", "a")
    waiting = gates.threads.submit(gates.ask, "impatient", "b")
    limit = "The request had 2 s (clientTimeoutInMills, or its client's own deadline) and was still "
    tail = " for model impatient."
    assert_error(running.result(), 504, "RequestTimeoutException", f"{limit}running{tail}")
    assert_error(waiting.result(), 504, "RequestTimeoutException", f"{limit}waiting in the queue{tail}")
    assert gates.pending("impatient") == 0
    gates.go("a")
    wait_until(lambda: gates.ask("impatient", "c").status_code == 200, "it serves", gates.server.tail)
    assert "b" not in gates.order()
    assert gates.server.describe("impatient")["workers"][0]["generation"] == 1


def test_async_requests_do_not_wait_for_each_other(gates: Gates) -> None:
    """`asyncCommunication`: sent one by one, answered in any order."""
    futures = {name: gates.begin("many", name) for name in "abcd"}
    gates.go("d")
    assert futures["d"].result().json()["batch"] == ["d"]
    assert not any(futures[name].done() for name in "abc")
    gates.go("a", "b", "c")
    assert [futures[name].result().status_code for name in "abc"] == [200] * 3


def test_what_waits_outlives_the_worker(gates: Gates) -> None:
    running = gates.begin("dying", "a")
    waiting = [gates.queue("dying", name) for name in "bc"]
    (pid,) = gates.server.worker_pids("dying")
    os.kill(pid, signal.SIGKILL)
    assert running.result().status_code == 507
    assert [future.result().status_code for future in waiting] == [200, 200]
    assert gates.order() == ["a", "b", "c"]
