"""Sequence batching. Handlers wait for files, so that the cases say what runs and what waits.

contract#sequences
"""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.torchserve.setup import Setup
from tests.contract.torchserve.shapes import NO_WORKER
from tests.e2e.server import RunningServer, pack_service, wait_until
from tests.phrases import worker_died

pytestmark = pytest.mark.e2e

KEY, START, END = "ts_request_sequence_id", "ts_request_sequence_start", "ts_request_sequence_end"
MODELS = {
    "one": "batchSize: 4\nmaxNumSequence: 20\nmaxSequenceJobQueueSize: 2",
    "two": "minWorkers: 2\nmaxWorkers: 2\nmaxNumSequence: 20",
    "few": "maxNumSequence: 2",
    "tired": "maxNumSequence: 1\nsequenceMaxIdleMSec: 300",
    "old": "maxNumSequence: 1\nsequenceTimeoutMSec: 300",
    "dying": "maxNumSequence: 20\nmaxSequenceJobQueueSize: 2",
    "stateless": "sequenceMaxIdleMSec: 0",
}


def prepare(store: Path) -> None:
    for model, config in MODELS.items():
        idle = "" if "sequenceMaxIdleMSec" in config else "sequenceMaxIdleMSec: 600000\n"
        pack_service("ts/modes_sequence", store, model=model, config=f"sequenceBatching: true\n{idle}{config}\n")


SERVER = Setup(prepare=prepare, load=tuple(f"{model}.mar" for model in MODELS))


class Client:
    """Requests of named sequences; those behind a gate run in threads."""

    def __init__(self, server: RunningServer, gate: Path, threads: ThreadPoolExecutor) -> None:
        self.server, self.gate, self.threads = server, gate, threads

    def ask(self, model: str, sequence: str | None, /, *, headers: Any = (), **order: Any) -> httpx.Response:
        keys = {} if sequence is None else {KEY: sequence}
        return self.server.predict(model, {"add": 1, **order}, headers={**keys, **dict(headers)})

    def open(self, model: str, sequence: str) -> None:
        """As soon as there is room for one more."""
        opened = lambda: self.ask(model, sequence, headers={START: "true"}).status_code == 200  # noqa: E731
        wait_until(opened, "there is room", self.server.tail)

    def begin(self, model: str, sequence: str, name: str, **order: Any) -> Future[httpx.Response]:
        """Returns when the handler works on it, and waits for `go(name)`."""
        future = self.threads.submit(self.ask, model, sequence, name=name, gate=str(self.gate), **order)
        wait_until((self.gate / f"begun-{name}").exists, f"{name} has begun", self.server.tail)
        return future

    def queue(self, model: str, sequence: str, **order: Any) -> Future[httpx.Response]:
        """Returns when it waits."""
        before = self.pending(model)
        future = self.threads.submit(self.ask, model, sequence, **order)
        wait_until(lambda: self.pending(model) > before, f"{sequence} waits", self.server.tail)
        return future

    @contextmanager
    def leaving(self, model: str, sequence: str, **order: Any) -> Iterator[None]:
        """A request whose client leaves at the end of the block."""
        address = self.server.info["inference"]
        host, _, port = address.rpartition("//")[2].rpartition(":")
        request = httpx.Request("POST", f"{address}/predictions/{model}", json=order, headers={KEY: sequence})
        lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        with socket.create_connection((host, int(port)), 30) as connection:
            connection.sendall(f"POST {request.url.path} HTTP/1.1\r\n{lines}\r\n".encode() + request.content)
            yield

    def go(self, name: str) -> None:
        (self.gate / f"go-{name}").touch()

    def pending(self, model: str) -> int:
        pending: int = self.server.describe(model)["jobQueueStatus"]["pendingRequests"]
        return pending


@pytest.fixture
def client(server: RunningServer, tmp_path: Path) -> Iterator[Client]:
    with ThreadPoolExecutor(8) as threads:
        yield Client(server, tmp_path, threads)


def refused(reply: httpx.Response, model: str, reason: str) -> None:
    """TorchServe's text, then why."""
    assert reply.status_code == 503, reply.text
    body = reply.json()
    assert body["type"] == "ServiceUnavailableException"
    assert re.fullmatch(re.escape(NO_WORKER.format(model)) + rf" \({reason}\)", body["message"]), body["message"]


def test_requests_of_a_sequence_share_their_state(client: Client) -> None:
    replies = [client.ask("two", "a", add=n) for n in (1, 2, 3)]
    assert [reply.json()["sum"] for reply in replies] == [1, 3, 6]
    assert len({reply.json()["pid"] for reply in replies}) == 1
    assert replies[0].headers[KEY] == "a"


def test_new_sequences_spread_over_the_workers_and_stay(client: Client) -> None:
    first = {name: client.ask("two", name).json()["pid"] for name in ("s1", "s2", "s3", "s4")}
    assert len(set(first.values())) == 2
    for name, pid in first.items():
        reply = client.ask("two", name).json()
        assert (reply["pid"], reply["sum"]) == (pid, 2)


def test_without_an_id_the_server_opens_a_sequence(client: Client) -> None:
    for given in (None, ""):
        reply = client.ask("one", given, add=5)
        sequence = reply.headers[KEY]
        assert re.fullmatch(r"ts-seq-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", sequence)
        assert (reply.json()["started"], reply.json()["sum"]) == ("true", 5)
        later = client.ask("one", sequence, add=2).json()
        assert (later["started"], later["sum"]) == (None, 7)


def test_a_batch_has_one_request_of_each_sequence_at_most(client: Client) -> None:
    running = client.begin("one", "b1", "first")
    waiting = [client.queue("one", name, add=10) for name in ("b1", "b1", "b2", "b3")]
    assert client.pending("one") == 4
    client.go("first")
    assert running.result().json()["batch"] == ["b1"]
    replies = [future.result().json() for future in waiting]
    assert [reply["sum"] for reply in replies] == [11, 21, 10, 10], "in order"
    assert [sorted(reply["batch"]) for reply in replies] == [
        ["b1", "b2", "b3"],
        ["b1"],
        ["b1", "b2", "b3"],
        ["b1", "b2", "b3"],
    ]


def test_the_queue_of_a_sequence_is_bounded(client: Client) -> None:
    running = client.begin("one", "full", "full")
    waiting = [client.queue("one", "full") for _ in range(2)]
    refused(client.ask("one", "full"), "one", "sequence full is full: maxSequenceJobQueueSize is 2")
    other = client.queue("one", "another")
    client.go("full")
    assert [future.result().status_code for future in (running, *waiting, other)] == [200] * 4


def test_the_number_of_sequences_is_bounded(client: Client) -> None:
    assert [client.ask("few", name).status_code for name in ("f1", "f2")] == [200, 200]
    refused(client.ask("few", "f3"), "few", "2 sequences are open: maxNumSequence is 2")
    refused(client.ask("few", None), "few", "2 sequences are open: maxNumSequence is 2")
    assert client.ask("few", "f2", headers={END: "true"}).status_code == 200
    assert client.ask("few", "f3").status_code == 200
    assert [client.ask("few", name, headers={END: "true"}).status_code for name in ("f1", "f3")] == [200, 200]


def test_a_request_may_end_its_sequence(client: Client) -> None:
    assert client.ask("one", "e").json()["sum"] == 1
    last = client.ask("one", "e", headers={END: "true"}).json()
    assert (last["sum"], last["ended"]) == (2, "true")
    reason = f"sequence e has ended: a request ended it; begin it anew with the header {START}: true"
    refused(client.ask("one", "e"), "one", reason)
    again = client.ask("one", "e", headers={START: "true"}).json()
    assert (again["sum"], again["started"]) == (1, "true")


def test_nothing_follows_the_request_that_ends_a_sequence(client: Client) -> None:
    running = client.begin("one", "closing", "closing")
    last = client.queue("one", "closing", headers={END: "true"})
    refused(client.ask("one", "closing"), "one", "sequence closing is closed: a request ends it")
    client.go("closing")
    assert [running.result().json()["sum"], last.result().json()["sum"]] == [1, 2]


@pytest.mark.parametrize("value", ["true", "h1", "h1; h2"])
def test_the_handler_may_end_sequences(client: Client, value: str) -> None:
    for name in ("h1", "h2"):
        assert client.ask("two", name, headers={START: "true"}).status_code == 200
    assert client.ask("two", "h1", close=value).headers[END] == value
    refused(client.ask("two", "h1"), "two", "sequence h1 has ended: the handler ended it; begin .*")
    assert client.ask("two", "h2", headers={END: "true"}).status_code == (503 if "h2" in value else 200)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("tired", r"it had no request for sequenceMaxIdleMSec \(300 ms\)"),
        ("old", r"it is older than sequenceTimeoutMSec \(300 ms\)"),
    ],
)
def test_a_sequence_ends_by_time(client: Client, model: str, why: str) -> None:
    """There is room for one sequence: another one is let in when the first is over."""
    client.open(model, "early")
    wait_until(lambda: client.ask(model, "late").status_code == 200, "the first sequence is over", client.server.tail)
    refused(client.ask(model, "early"), model, f"sequence early has ended: {why}; begin .*")


def test_a_running_request_keeps_its_sequence_from_being_idle(client: Client) -> None:
    """The idle time begins with the answer: the second request was sent long before the first was answered."""
    client.open("tired", "busy")
    running = client.begin("tired", "busy", "busy", headers={START: "true"})
    refused(client.ask("tired", "other"), "tired", "1 sequences are open: maxNumSequence is 1")
    waiting = client.queue("tired", "busy")
    client.go("busy")
    sums = [running.result().json()["sum"], waiting.result().json()["sum"]]
    assert sums[1] == sums[0] + 1


def test_a_workers_death_ends_its_sequences(client: Client) -> None:
    running = client.begin("dying", "d", "d")
    waiting = client.queue("dying", "d")
    (pid,) = client.server.worker_pids("dying")
    os.kill(pid, signal.SIGKILL)
    assert running.result().status_code == 507
    assert running.result().json()["message"].startswith(worker_died(""))
    why = "sequence d has ended: the worker that held its state ended"
    refused(waiting.result(), "dying", why)
    wait_until(lambda: client.server.describe("dying")["state"] == "READY", "a new worker", client.server.tail)
    refused(client.ask("dying", "d"), "dying", f"{why}; begin .*")
    assert client.ask("dying", "d", headers={START: "true"}).json()["sum"] == 1


def test_a_failed_batch_is_never_run_again(client: Client) -> None:
    """Their state may have changed: isolation by running each alone would count twice."""
    running = client.begin("one", "i0", "isolated")
    waiting = [client.queue("one", "i1", add=1), client.queue("one", "i2", fail=True)]
    client.go("isolated")
    assert running.result().status_code == 200
    assert [future.result().status_code for future in waiting] == [503, 503]
    assert client.ask("one", "i1").json()["sum"] == 1


def test_a_client_that_leaves_frees_its_place(client: Client) -> None:
    running = client.begin("one", "gone", "gone")
    with client.leaving("one", "gone", add=100):
        wait_until(lambda: client.pending("one") == 1, "the request waits", client.server.tail)
    wait_until(lambda: client.pending("one") == 0, "the request has left", client.server.tail)
    client.go("gone")
    assert running.result().json()["sum"] == 1
    assert client.ask("one", "gone").json()["sum"] == 2


def test_describe(server: RunningServer) -> None:
    described = server.describe("one")
    members = ("stateful", "sequenceMaxIdleMSec", "sequenceTimeoutMSec", "maxNumSequence", "maxSequenceJobQueueSize")
    assert [described[name] for name in members] == [True, 600000, 0, 20, 2]
    assert described["jobQueueStatus"] == {"remainingCapacity": 40, "pendingRequests": 0}
    described = server.describe("stateless")
    assert [described[name] for name in members] == [False, 0, 0, 0, 0]


def test_without_an_idle_time_the_model_is_stateless(client: Client) -> None:
    """sequenceMaxIdleMSec must be above 0."""
    reply = client.ask("stateless", None)
    assert (reply.headers[KEY], reply.json()["started"]) == ("", None)
