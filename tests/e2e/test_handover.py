"""Requests that run while another frontend takes their worker over."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.e2e.groups import Recorder
from tests.e2e.server import RunningServer, client_of, new_store, pack_service, run_server, wait_until
from tests.e2e.test_supervisor import ranks_of
from tests.e2e.test_upgrade import SUPERVISED, frontend, upgrade
from tests.frontend.deferred.callbacks.receiver import SECRET, receiver
from tests.processes import is_alive

pytestmark = pytest.mark.e2e

MODELS = {
    "slow": ("slow", ""),
    "numbers": ("gated_stream:coroutine", ""),
    "turns": ("gated_stream:generator", "continuousBatching: true\nbatchSize: 4\n"),
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """Each model has one worker."""
    for model, (service, config) in MODELS.items():
        name, _, function = service.partition(":")
        pack_service(name, new_store(tmp_path), model=model, function=function, config=f"{config}minWorkers: 1\n")
    with run_server(tmp_path, "--models", "all", properties=SUPERVISED, fork=False) as running:
        yield running


class Call:
    """A request on a connection of its own."""

    def __init__(self, server: RunningServer, model: str, order: dict[str, object]) -> None:
        self.text, self.error = "", ""
        self._thread = threading.Thread(target=self._run, args=[server.info["inference"], model, order])
        self._thread.start()

    def _run(self, address: str, model: str, order: dict[str, object]) -> None:
        with client_of(address) as client:
            try:
                with client.stream("POST", f"/predictions/{model}", json=order) as reply:
                    for text in reply.iter_text():
                        self.text += text
            except httpx.TransportError as error:
                self.error = repr(error)

    def end(self) -> str:
        self._thread.join()
        assert self.error == ""
        return self.text


def upgraded(server: RunningServer) -> psutil.Process:
    """Returns the frontend that was followed by another one."""
    before = psutil.Process(frontend(server))
    done = upgrade(server)
    assert (done.returncode, done.stderr) == (0, "")
    return before


def test_a_stream_goes_on_beside_new_requests(server: RunningServer, tmp_path: Path) -> None:
    workers = server.worker_pids("numbers")
    stream = Call(server, "numbers", {"count": 3, "dir": str(tmp_path)})
    wait_until(lambda: stream.text == "1\n", "the stream has begun")
    before = upgraded(server)
    assert server.predict("numbers", {"count": 1, "dir": str(tmp_path)}).text == "1\n"
    assert is_alive(before)
    for number in ("2", "3"):
        (tmp_path / number).touch()
    assert stream.end() == "1\n2\n3\n"
    wait_until(lambda: not is_alive(before), "the frontend before has ended")
    assert server.worker_pids("numbers") == workers
    assert server.predict("numbers", {"count": 3, "dir": str(tmp_path)}).text == "1\n2\n3\n"


def test_a_continuous_handler_has_requests_of_both(server: RunningServer, tmp_path: Path) -> None:
    workers = server.worker_pids("turns")
    stream = Call(server, "turns", {"count": 3, "dir": str(tmp_path)})
    wait_until(lambda: stream.text == "1\n", "the stream has begun")
    before = upgraded(server)
    other = Call(server, "turns", {"count": 2, "dir": str(tmp_path)})
    for number in ("2", "3"):
        (tmp_path / number).touch()
    assert (stream.end(), other.end()) == ("1\n2\n3\n", "1\n2\n")
    wait_until(lambda: not is_alive(before), "the frontend before has ended")
    assert server.worker_pids("turns") == workers


def test_requests_that_wait_are_answered_in_their_order(server: RunningServer, tmp_path: Path) -> None:
    mark, hold = tmp_path / "mark", tmp_path / "hold"
    first = Call(server, "slow", {"seconds": 60, "hold": str(hold), "mark": str(mark)})
    wait_until(mark.exists, "the handler works")
    others = [Call(server, "slow", {"seconds": 0, "mark": str(mark)}) for _ in range(5)]
    wait_until(lambda: server.describe("slow")["jobQueueStatus"]["pendingRequests"] > 0, "they wait")
    before = upgraded(server)
    new = Call(server, "slow", {"seconds": 0})
    hold.touch()
    assert json.loads(first.end()) == {"slept": 60}
    assert [json.loads(one.end()) for one in (*others, new)] == [{"slept": 0}] * 6
    wait_until(lambda: not is_alive(before), "the frontend before has ended")


def test_a_client_that_leaves_is_heard_of(server: RunningServer, tmp_path: Path) -> None:
    order = {"count": 3, "dir": str(tmp_path)}
    address = server.info["inference"]
    with client_of(address) as client, client.stream("POST", "/predictions/numbers", json=order) as reply:
        assert next(reply.iter_text()) == "1\n"
        before = upgraded(server)
    (tmp_path / "2").touch()
    wait_until(lambda: "closed" in (tmp_path / "mark").read_text(), "the handler has ended", server.tail)
    wait_until(lambda: not is_alive(before), "the frontend before has ended")


def test_one_upgrade_after_the_other(server: RunningServer, tmp_path: Path) -> None:
    """The second one waits for the requests of the server before the first."""
    stream = Call(server, "numbers", {"count": 2, "dir": str(tmp_path)})
    wait_until(lambda: stream.text == "1\n", "the stream has begun")
    upgraded(server)
    second = threading.Thread(target=upgraded, args=[server])
    second.start()
    now = frontend(server)
    assert server.predict("numbers", {"count": 1, "dir": str(tmp_path)}).text == "1\n"
    assert frontend(server) == now
    (tmp_path / "2").touch()
    assert stream.end() == "1\n2\n"
    second.join()
    assert frontend(server) != now


def test_a_worker_that_dies_is_told_of(server: RunningServer, tmp_path: Path) -> None:
    stream = Call(server, "numbers", {"count": 2, "dir": str(tmp_path)})
    wait_until(lambda: stream.text == "1\n", "the stream has begun")
    before = upgraded(server)
    server.wait_serving()
    server.kill_worker(server.worker_pids("numbers")[0], "numbers")
    stream._thread.join()
    assert stream.error
    wait_until(lambda: not is_alive(before), "the frontend before has ended")
    assert server.predict("numbers", {"count": 1, "dir": str(tmp_path)}).text == "1\n"


def test_the_frontend_that_follows_crashes(server: RunningServer, tmp_path: Path) -> None:
    stream = Call(server, "numbers", {"count": 2, "dir": str(tmp_path)})
    wait_until(lambda: stream.text == "1\n", "the stream has begun")
    workers = server.worker_pids("numbers")
    before = upgraded(server)
    server.wait_serving()
    killed = psutil.Process(frontend(server))
    os.kill(killed.pid, signal.SIGKILL)
    stream._thread.join()
    assert stream.error
    wait_until(lambda: not is_alive(before), "the frontend before has ended")
    (tmp_path / "2").touch()
    wait_until(lambda: _answers(server), "another frontend answers", server.tail)
    assert server.predict("numbers", {"count": 2, "dir": str(tmp_path)}).text == "1\n2\n"
    assert server.worker_pids("numbers") == workers


def _answers(server: RunningServer) -> bool:
    try:
        return server.inference.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def test_ranks_go_over_together(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "tp2")
    with run_server(tmp_path, "--models", "tp2=tp2.mar", properties=SUPERVISED, fork=False) as server:
        ranks = ranks_of(server)
        for _ in range(2):
            before = upgraded(server)
            assert server.predict("tp2", b"x").status_code == 200
            wait_until(lambda: not is_alive(before), "the frontend before has ended")  # noqa: B023
        assert ranks_of(server) == ranks
        assert len([line for line in recorder.of_rank(1) if "env" in line]) == 1


def test_a_stop_ends_both(server: RunningServer, tmp_path: Path) -> None:
    """Requests of both have `drain_timeout`."""
    stream = Call(server, "numbers", {"count": 2, "dir": str(tmp_path)})
    wait_until(lambda: stream.text == "1\n", "the stream has begun")
    upgraded(server)
    server.process.send_signal(signal.SIGTERM)
    (tmp_path / "2").touch()
    assert stream.end() == "1\n2\n"
    assert server.process.wait(60) == 0


def test_a_job_ends_where_it_began_and_another_is_run_by_the_new_server(tmp_path: Path) -> None:
    """Its callback is sent by the new server, which does not cancel it."""
    pack_service("slow", new_store(tmp_path), config="minWorkers: 2\nmaxWorkers: 2\n")
    secrets = tmp_path / "secrets"
    secrets.write_text(f"{SECRET}\n")
    secrets.chmod(0o600)
    properties = f"{SUPERVISED}jobs=true\njobs_at_once=1\ncallback_hosts=127.0.0.1\ncallback_secrets={secrets}\n"
    mark, hold = tmp_path / "mark", tmp_path / "hold"
    with (
        receiver() as told,
        run_server(tmp_path, "--models", "slow.mar", properties=properties, fork=False) as server,
    ):
        order = {"seconds": 60, "hold": str(hold), "mark": str(mark)}
        runs = deferred(server, order, **{"X-Msx-Callback": told.url})
        wait_until(mark.exists, "the job runs")
        waits = deferred(server, {"seconds": 0, "mark": str(tmp_path / "other")})
        before = upgraded(server)
        wait_until(lambda: state_of(server, waits) == "done", "the other job has ended", server.tail)
        assert (state_of(server, runs), is_alive(before)) == ("running", True)
        assert server.inference.get(f"/jobs/{runs}/result").status_code == 202
        assert server.inference.delete(f"/jobs/{runs}").status_code == 503
        hold.touch()
        wait_until(lambda: state_of(server, runs) == "done", "the job has ended", server.tail)
        assert server.inference.get(f"/jobs/{runs}/result").json() == {"slept": 60}
        wait_until(lambda: not is_alive(before), "the frontend before has ended")
        assert mark.read_text() == "started\ndone\n"
        wait_until(lambda: told.got, "the callback has come", server.tail)
        assert [json.loads(one.body)["data"]["id"] for one in told.got] == [runs]


def deferred(server: RunningServer, order: dict[str, object], **headers: str) -> str:
    reply = server.inference.post("/predictions/slow", json=order, headers={"Prefer": "respond-async", **headers})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def state_of(server: RunningServer, job: str) -> str:
    return str(server.inference.get(f"/jobs/{job}").json()["state"])
