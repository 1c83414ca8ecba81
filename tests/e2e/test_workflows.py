"""Workflows over the life of a server: restarts, the end of it, and who may do what."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from tests.e2e.server import RunningServer, client_of, new_store, run_server, start_server, wait_until
from tests.e2e.test_grpc import failure, predict, stream
from tests.e2e.test_state import SLOW_TO_LOAD, kill
from tests.wars import CHAIN, MODELS, pack_node, pack_war

pytestmark = pytest.mark.e2e

TEXT = {"content-type": "text/plain"}
ANSWER = 'post(body=m1(body=pre(body="x")))'


def pack_chain(folder: Path) -> Path:
    store = new_store(folder)
    pack_node(store, "m1")
    pack_war(store, "chain", MODELS + CHAIN)
    return store


def register(server: RunningServer, **parameters: Any) -> None:
    reply = server.management.post("/workflows", params={"url": "chain.war", **parameters})
    assert reply.status_code == 200, reply.text


def ask(server: RunningServer, content: str = "x") -> httpx.Response:
    return server.inference.post("/wfpredict/chain", content=content, headers=TEXT)


def names(server: RunningServer) -> list[str]:
    return [one["workflowName"] for one in server.management.get("/workflows").json()["workflows"]]


def test_after_sigkill_they_are_there_again(tmp_path: Path) -> None:
    pack_chain(tmp_path)
    server = start_server(tmp_path)
    register(server)
    register(server, workflow_name="gone")
    assert server.management.put("/models/chain__m1?min_worker=2&synchronous=true").status_code == 200
    assert server.management.put("/models/chain__m1/1.0/set-default").status_code == 200
    assert server.management.delete("/workflows/gone").status_code == 200
    kill(server)
    with run_server(tmp_path) as again:
        assert names(again) == ["chain"]
        assert ask(again).text == ANSWER
        with grpc.insecure_channel(again.info["grpc_inference"]) as channel:
            answer = "post(body=m1(body=pre(body=x)))"  # bytes have no type over gRPC
            assert predict(channel, "chain", b"x").decode() == answer
            assert [one.prediction.decode() for one in stream(channel, "chain", b"x")] == [answer]
            assert "Error executing m1: " in failure(lambda: predict(channel, "chain", b"m1:refuse=422"))[1]
            assert "takes predictions alone" in failure(lambda: predict(channel, "chain:method"))[1]
        assert again.describe("chain__m1")["minWorkers"] == 2
        assert again.describe("chain__pre")["loadedAtStartup"] is True
        assert again.management.get("/models/gone__m1").status_code == 404
        assert again.management.delete("/workflows/chain").status_code == 200
    with run_server(tmp_path) as third:
        assert names(third) == []
        assert third.unpacked() == []
    snapshots = [path.read_text() for path in (tmp_path / "logs" / "config").iterdir()]
    assert snapshots
    assert "chain" not in "".join(snapshots)


def test_an_archive_that_is_gone_is_named_at_the_start(tmp_path: Path) -> None:
    store = pack_chain(tmp_path)
    with run_server(tmp_path) as server:
        register(server)
    (store / "chain.war").unlink()
    with run_server(tmp_path, model_api=False, ready=False) as again:
        assert again.info["not_loaded"] == [
            "workflow chain could not be restored: Workflow not found in workflow store: chain.war"
        ]
        ready = again.inference.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "Not ready: not serving: workflow chain")
        assert again.management.get("/models").json()["models"] == []
        for reply in (again.management.post("/workflows?url=x"), again.management.delete("/workflows/x")):
            assert (reply.status_code, reply.json()["type"]) == (405, "MethodNotAllowedException")
    with run_server(tmp_path, ready=False) as third:
        assert third.info["not_loaded"]
        assert third.management.delete("/workflows/chain").status_code == 200
        assert third.inference.get("/readyz").status_code == 200
        assert third.management.delete("/workflows/chain").status_code == 404
    with run_server(tmp_path) as last:
        assert last.info["not_loaded"] == []


def test_the_end_of_the_server_lets_a_request_take_all_of_its_nodes(tmp_path: Path) -> None:
    pack_chain(tmp_path)
    file = tmp_path / "go"
    with run_server(tmp_path) as server, ThreadPoolExecutor(2) as pool:
        register(server)
        answer = pool.submit(ask, server, f"m1:wait_for={file}")
        wait_until(Path(f"{file}.waiting").exists, "the second node runs", server.tail)
        ended = pool.submit(server.terminate)
        wait_until(lambda: server.inference.get("/readyz").status_code == 503, "the server drains", server.tail)
        assert ask(server).json()["message"] == "The server is shutting down and takes no more requests."
        file.touch()
        assert answer.result().text == f'post(body=m1(body=pre(body="m1:wait_for={file}")))'
        assert ended.result() == 0


def test_unregister_lets_a_request_take_all_of_its_nodes(tmp_path: Path) -> None:
    pack_chain(tmp_path)
    file = tmp_path / "go"
    with run_server(tmp_path) as server, ThreadPoolExecutor(2) as pool:
        register(server)
        answer = pool.submit(ask, server, f"m1:wait_for={file}")
        wait_until(Path(f"{file}.waiting").exists, "the second node runs", server.tail)
        gone = pool.submit(server.management.delete, "/workflows/chain")
        wait_until(lambda: names(server) == [], "it is being unregistered", server.tail)
        file.touch()
        assert answer.result().status_code == 200
        assert gone.result().json() == {"status": 'Workflow "chain" unregistered'}
        assert server.management.get("/models/chain__pre").status_code == 404
        assert server.unpacked() == []


def test_a_store_of_their_own_and_keys(tmp_path: Path) -> None:
    store = pack_chain(tmp_path)
    wars = tmp_path / "wars"
    wars.mkdir()
    (store / "chain.war").rename(wars / "chain.war")
    with run_server(tmp_path, "--workflow-store", str(wars), tokens=True) as server:
        register(server)
        assert ask(server).text == ANSWER
        assert server.keys is not None
        inference, management = server.keys["inference"]["key"], server.keys["management"]["key"]
        with client_of(server.info["inference"], management) as client:
            assert client.post("/wfpredict/chain").json()["type"] == "InvalidKeyException"
        with client_of(server.info["management"], inference) as client:
            assert client.get("/workflows").json()["type"] == "InvalidKeyException"


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_the_end_of_the_server_while_one_is_registered_leaves_nothing_of_it(tmp_path: Path, end: str) -> None:
    store, mark = pack_chain(tmp_path), tmp_path / "loading"
    (store / "slow" / "MAR-INF").mkdir(parents=True)
    (store / "slow" / "h.py").write_text(SLOW_TO_LOAD.format(mark=str(mark)))
    (store / "slow" / "MAR-INF" / "MANIFEST.json").write_text('{"model": {"modelName": "slow", "handler": "h.py"}}')
    pack_war(store, "half", MODELS.replace("m2.mar", "slow").replace("m2:", "slow:") + "dag:\n  m1: [slow]\n")
    server = start_server(tmp_path, properties="parallel_starts=2\n")  # one that never ends lets the other one start
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(server.management.post, "/workflows?url=half.war")
        wait_until(lambda: mark.exists() and server.describe("half__m1")["state"] == "READY", "one loads", server.tail)
        if end == "kill":
            server.kill()
            assert isinstance(call.exception(), httpx.TransportError)
        else:
            assert server.terminate() == 0
            message = "The server is shutting down: models are not changed any more."
            assert (call.result().status_code, call.result().json()["message"]) == (503, message)
        server.close()
    with run_server(tmp_path) as again:
        assert (names(again), again.management.get("/models").json()["models"]) == ([], [])
        assert again.unpacked() == []
