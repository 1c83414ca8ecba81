"""Continuous batching. The handler writes down its calls, and makes each only when the case lets it.

contract#continuous-batching
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.torchserve.setup import Setup
from tests.e2e.server import RunningServer, pack_service, wait_until
from tests.lines import whole_lines

pytestmark = pytest.mark.e2e

KEY, END = "ts_request_sequence_id", "ts_request_sequence_end"
ORDER = "x-order"
SEQUENCES = "sequenceBatching: true\nsequenceMaxIdleMSec: 600000\nmaxNumSequence: 8\nmaxSequenceJobQueueSize: 4\n"
MODELS = {
    "single": "batchSize: 1",
    "pair": "batchSize: 2",
    "tp2": "batchSize: 2\nparallelType: tp\nmsrun: {nproc-per-node: 2}",
    "pp2": "batchSize: 2\nparallelType: pp\nmsrun: {nproc-per-node: 2}",
    "pptp4": "batchSize: 2\nparallelType: pptp\nmsrun: {nproc-per-node: 4}\n"
    "parallel: {pipelineStages: 2, tensorParallel: 2}",
    "stateful": f"batchSize: 1\n{SEQUENCES}",
}


def prepare(store: Path) -> None:
    for model, config in MODELS.items():
        config = f"continuousBatching: true\n{config}\n"
        pack_service("ts/modes_continuous", store, model=model, config=config)


SERVER = Setup(prepare=prepare, load=tuple(f"{model}.mar" for model in MODELS))


class Desk:
    """Requests to the models, and the calls that the handler has made for this case's gate."""

    def __init__(self, server: RunningServer, gate: Path, threads: ThreadPoolExecutor) -> None:
        self.server, self.gate, self.threads = server, gate, threads
        self.opened = 0

    def ask(self, model: str, name: str, tokens: int, *, headers: Any = None, **order: Any) -> httpx.Response:
        order = {"name": name, "tokens": tokens, "gate": str(self.gate), **order}
        return self.server.predict(model, order, headers={ORDER: json.dumps(order), **(headers or {})})

    def begin(self, model: str, *args: Any, in_flight: int, **order: Any) -> Future[httpx.Response]:
        """Returns when so many are with the worker."""
        future = self.threads.submit(self.ask, model, *args, **order)
        self.wait_for(model, in_flight, 0)
        return future

    def queue(self, model: str, *args: Any, **order: Any) -> Future[httpx.Response]:
        """Returns when it waits because all slots are taken."""
        future = self.threads.submit(self.ask, model, *args, **order)
        wait_until(lambda: self.server.metric("msx_queue_depth", model=model) == 1, "it waits", self.server.tail)
        return future

    def wait_for(self, model: str, in_flight: int, queued: int) -> None:
        names = ("msx_requests_in_flight", "msx_queue_depth")
        reached = lambda: [self.server.metric(name, model=model) for name in names] == [in_flight, queued]  # noqa: E731
        wait_until(reached, f"{in_flight} run and {queued} wait", self.server.tail)

    def calls(self, rank: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in whole_lines(self.gate / f"calls-{rank}")]

    def followed(self, rank: int, expected: list[dict[str, Any]]) -> None:
        """Waits for the same calls on another rank."""
        same = lambda: self.calls(rank) == expected  # noqa: E731
        wait_until(same, f"rank {rank} has followed", lambda: f"{expected}\n{self.calls(rank)}")

    def next_call(self) -> dict[str, Any]:
        """Let the handler make one more call, as soon as it begins it; returns what it has written down about it."""
        self.opened += 1
        call = self.look()
        (self.gate / f"go-{self.opened}").touch()
        return call

    def look(self) -> dict[str, Any]:
        """The call that waits for its gate."""
        number = max(self.opened, 1)
        wait_until(lambda: len(self.calls()) >= number, f"call {number} has begun", self.server.tail)
        return self.calls()[number - 1]

    def until(self, *names: str) -> dict[str, Any]:
        """Let calls be made until one has these requests; that one is not made yet."""
        while True:
            wait_until(lambda: len(self.calls()) > self.opened, "another call", self.server.tail)
            if sorted((call := self.calls()[self.opened])["names"]) == sorted(names):
                return call
            self.next_call()

    def open_all(self) -> None:
        (self.gate / "go").touch()


@pytest.fixture
def desk(server: RunningServer, tmp_path: Path) -> Iterator[Desk]:
    with ThreadPoolExecutor(8) as threads:
        desk = Desk(server, tmp_path, threads)
        try:
            yield desk
        finally:
            desk.open_all()


def test_the_handler_is_called_once_a_token(desk: Desk) -> None:
    """Every value is a chunk; later calls have no inputs."""
    order = {"name": "a", "tokens": 3, "gate": str(desk.gate)}
    (desk.gate / "go-1").touch()  # the head leaves with the first chunk
    with desk.server.inference.stream("POST", "/predictions/single", json=order) as reply:
        assert reply.status_code == 200
        assert (reply.headers["transfer-encoding"], reply.headers["ts_stream_next"]) == ("chunked", "true")
        chunks = reply.iter_raw()
        assert next(chunks) == b"a2 "
        assert desk.next_call()["call"] == 1
        desk.next_call()
        assert next(chunks) == b"a1 "
        desk.next_call()
        assert b"".join(chunks) == b"a0 "
    assert [call["fresh"] for call in desk.calls()] == [["a"], [], []]


@pytest.mark.parametrize("order", [{}, {"plain": True}])
def test_a_first_response_that_is_final(desk: Desk, order: Any) -> None:
    """TorchServe's client hangs. A criterion that says None is as final as one that says True."""
    desk.open_all()
    reply = desk.ask("single", "a", 1, **order)
    assert (reply.status_code, reply.text, reply.headers["content-length"]) == (200, "a0 ", "3")
    assert "ts_stream_next" not in reply.headers
    assert len(desk.calls()) == 1


def test_requests_join_and_leave_between_two_calls(desk: Desk) -> None:
    a = desk.begin("pair", "a", 50, in_flight=1)
    assert desk.look()["names"] == ["a"], "it begins alone: nothing is waited for"
    b = desk.begin("pair", "b", 2, in_flight=2)
    c = desk.queue("pair", "c", 1)
    desk.next_call()
    assert desk.next_call()["names"] == ["a", "b"], "b joins the very next call"
    assert not b.done()
    assert desk.next_call()["names"] == ["a", "b"]
    assert b.result().text == "b1 b0 "
    assert desk.until("a", "c")["fresh"] == ["c"], "c takes the free slot while a goes on"
    desk.next_call()
    assert c.result().text == "c0 "
    assert not a.done()
    desk.open_all()
    assert a.result().text.split() == [f"a{n}" for n in range(49, -1, -1)]


def test_a_client_that_leaves_frees_its_slot(desk: Desk) -> None:
    b = desk.begin("pair", "b", 50, in_flight=1)
    order = json.dumps({"name": "a", "tokens": 1000000, "gate": str(desk.gate)}).encode()
    connection = send(desk.server, "pair", order)
    desk.wait_for("pair", 2, 0)
    c = desk.queue("pair", "c", 2)
    desk.until("a", "b")
    connection.close()
    call = desk.until("b", "c")
    assert call["cached"] == ["b", "c"], "what context.cache held of it is gone"
    desk.open_all()
    assert [b.result().status_code, c.result().text] == [200, "c1 c0 "]


def test_an_exception_ends_its_request_alone(desk: Desk) -> None:
    a = desk.begin("pair", "a", 3, in_flight=1)
    b = desk.begin("pair", "b", 3, in_flight=2, fail="one")
    desk.open_all()
    assert a.result().text == "a2 a1 a0 "
    assert (b.result().status_code, b.result().json()["code"]) == (503, 503)
    assert "this one is bad" in b.result().json()["message"]


def test_what_the_handler_raises_fails_all_of_the_call(desk: Desk) -> None:
    """Nothing is run again: the handler's state has gone on."""
    a = desk.begin("pair", "a", 5, in_flight=1)
    b = desk.begin("pair", "b", 5, in_flight=2, fail="all")
    desk.open_all()
    assert b.result().status_code == 503
    with pytest.raises(httpx.RemoteProtocolError):
        a.result()
    wait_until(lambda: len(desk.calls()) == 2, "two calls", desk.server.tail)
    assert desk.ask("pair", "next", 1).text == "next0 "


def test_a_description_is_a_call_of_its_own(desk: Desk) -> None:
    a = desk.begin("pair", "a", 3, in_flight=1)
    desk.look()
    described = desk.threads.submit(desk.server.management.get, "/models/pair", params={"customized": "true"})
    desk.wait_for("pair", 2, 0)
    desk.next_call()
    assert described.result().json()[0]["customizedMetadata"] == {"requests": 1, "cached": ["a"]}
    assert not a.done()
    desk.open_all()
    assert a.result().text == "a2 a1 a0 "
    assert [call["names"] for call in desk.calls()] == [["a"], ["a"], ["a"]]


def test_a_death_fails_those_in_the_slots_and_those_that_wait_go_on(desk: Desk) -> None:
    a = desk.begin("single", "a", 5, in_flight=1)
    b = desk.queue("single", "b", 1)
    (pid,) = desk.server.worker_pids("single")
    desk.look()
    (desk.gate / "calls-0").unlink()
    os.kill(pid, signal.SIGKILL)
    assert a.result().status_code == 507
    desk.open_all()
    assert b.result().text == "b0 "


def test_a_drain_finishes_what_is_in_the_slots(desk: Desk) -> None:
    archive = pack_service(
        "ts/modes_continuous", desk.server.store, model="leaving", config="continuousBatching: true\n"
    )
    assert desk.server.register(archive).status_code == 200
    a = desk.begin("leaving", "a", 3, in_flight=1)
    desk.look()
    gone = desk.threads.submit(desk.server.management.delete, "/models/leaving")
    left = lambda: desk.server.management.get("/models/leaving").status_code == 404  # noqa: E731
    wait_until(left, "it takes no more", desk.server.tail)
    desk.open_all()
    assert a.result().text == "a2 a1 a0 "
    assert gone.result().status_code == 200


@pytest.mark.parametrize(("model", "ranks", "informed"), [("tp2", 2, 2), ("pp2", 2, 1), ("pptp4", 4, 2)])
def test_all_ranks_of_a_group_make_the_same_calls(desk: Desk, model: str, ranks: int, informed: int) -> None:
    """Requests join, leave and are cancelled on all ranks alike; those of the first stage get the inputs.

    contract#devices
    """
    a = desk.begin(model, "a", 50, in_flight=1)
    b = desk.begin(model, "b", 1, in_flight=2)
    desk.next_call()
    desk.next_call()
    assert b.result().text == "b0 "
    order = json.dumps({"name": "c", "tokens": 1000000, "gate": str(desk.gate)}).encode()
    connection = send(desk.server, model, order)
    desk.until("a", "c")
    connection.close()
    desk.until("a")
    desk.open_all()
    assert a.result().text.split()[-1] == "a0"
    lead = desk.calls(0)
    for rank in range(1, ranks):
        desk.followed(rank, lead if rank < informed else [{**call, "fresh": []} for call in lead])
    (worker,) = desk.server.describe(model)["workers"]
    assert worker["generation"] == 1


# -- with sequences --


def test_a_request_of_the_same_sequence_may_stop_a_stream(desk: Desk) -> None:
    """TorchServe gives such models twice the slots, so that it gets in."""
    a = desk.begin("stateful", "a", 1000000, in_flight=1, headers={KEY: "s"})
    desk.next_call()
    stop = desk.threads.submit(desk.ask, "stateful", "stop", 1, headers={KEY: "s"}, stop="a")
    call = desk.until("a", "stop")
    assert call["fresh"] == ["stop"]
    desk.open_all()
    assert stop.result().text == "stop0 "
    assert a.result().text.endswith("a0 ")
    assert a.result().headers[KEY] == "s"


def test_the_reply_may_end_the_sequence(desk: Desk) -> None:
    """TorchServe's way: the header of a response names it."""
    desk.open_all()
    assert desk.ask("stateful", "a", 2, headers={KEY: "closed"}).text == "a1 a0 "
    assert desk.ask("stateful", "b", 1, headers={KEY: "closed"}, end=True).headers[END] == "closed"
    reply = desk.ask("stateful", "c", 1, headers={KEY: "closed"})
    assert (reply.status_code, "sequence closed has ended: the handler ended it" in reply.text) == (503, True)


def test_a_request_may_end_its_sequence(desk: Desk) -> None:
    desk.open_all()
    assert desk.ask("stateful", "a", 2, headers={KEY: "last", END: "true"}).text == "a1 a0 "
    assert desk.ask("stateful", "b", 1, headers={KEY: "last"}).status_code == 503


def test_describe(server: RunningServer) -> None:
    described = server.describe("stateful")
    assert (described["continuousBatching"], described["stateful"]) == (True, True)
    described = server.describe("pair")
    assert (described["continuousBatching"], described["stateful"], described["batchSize"]) == (True, False, 2)


def send(server: RunningServer, model: str, body: bytes) -> socket.socket:
    """A request whose client leaves by closing the socket."""
    host, _, port = server.info["inference"].rpartition("//")[2].rpartition(":")
    connection = socket.create_connection((host, int(port)), 30)
    head = f"POST /predictions/{model} HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
    head += f"{ORDER}: {body.decode()}\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection
