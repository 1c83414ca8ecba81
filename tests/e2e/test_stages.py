"""Models whose stages run in processes of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import grpc
import httpx
import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.server import SERVICES, RunningServer, new_store, run_server, wait_until
from tests.e2e.test_grpc import Request, failure, predict, predictions, runs_out_of_time, stream
from tests.http2_transport import Http2Transport
from tests.phrases import worker_died

pytestmark = pytest.mark.e2e

TEXT = {"content-type": "text/plain"}
CONFIGS = {
    "chain": """
routine: nightly
stages:
  one: {handler: stages.py:One, device: none}
  two: {handler: stages.py:Two, workers: 2, env: [{PLACE: first}, {PLACE: second}]}
  three: {handler: "stages:Three", note: of three}
routes:
  all: {}
  short: {first: two, last: two}
  /inference: {first: two}
""",
    "diamond": """
edgeCapacity: 1
batchSize: 4
stages:
  one: {handler: stages.py:One}
  two: {handler: stages.py:Two}
  three: {handler: stages.py:Three, from: one, workers: 2}
  join: {handler: stages.py:Join, from: [three, two]}
""",
    "shared": """
stages:
  one: {handler: stages.py:One}
  three: {handler: stages.py:Three, from: []}
  two: {handler: stages.py:Two, from: [one, three], batchSize: 2, maxBatchDelay: 600000, batchingPolicy: fixed}
routes:
  first: {first: one}
  second: {first: three}
""",
    "speaks": """
stages:
  one: {handler: stages.py:One}
  last: {handler: stages.py:Streams}
routes:
  main: {first: one}
  wrong: {first: last, last: end}
""".replace("routes:", "  end: {handler: stages.py:Two}\nroutes:").replace("{first: one}", "{first: one, last: last}"),
}


def pack_stages(store: Path, model: str, config: str, version: str = "1.0") -> Path:
    file = store / f"{model}-{version}.yaml"
    file.write_text(config)
    extra = str(SERVICES / "stages.py")
    return pack(
        PackOptions(
            model_name=model, version=version, config_file=str(file), extra_files=extra, export_path=store, force=True
        )
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("stages")
    for model, config in CONFIGS.items():
        pack_stages(new_store(folder), model, config)
    with run_server(folder, "--models", *(f"{model}.mar" for model in CONFIGS)) as running:
        yield running


def ask(server: RunningServer, path: str, content: str = "x") -> tuple[int, str]:
    reply = server.inference.post(path, content=content, headers=TEXT)
    return reply.status_code, reply.text


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/predictions/chain", "three(two(one(x)))"),
        ("/predictions/chain:all", "three(two(one(x)))"),
        ("/predictions/chain:short", "two(x)"),
        ("/inference", "three(two(x))"),
        ("/v1/models/chain:predict", "three(two(one(x)))"),
        ("/predictions/diamond", "join(three=three(one(x));two=two(one(x)))"),
    ],
)
def test_routes(server: RunningServer, path: str, answer: str) -> None:
    assert ask(server, path) == (200, answer)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/predictions/chain:none", 404), ("/explanations/chain", 400), ("/inference/more", 404), ("/other", 404)],
)
def test_what_is_not_a_route(server: RunningServer, path: str, status: int) -> None:
    assert ask(server, path)[0] == status


def test_routes_share_workers_and_batches(server: RunningServer) -> None:
    """The stage that both go through waits for a batch of two."""
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda route: ask(server, f"/predictions/shared:{route}"), ("first", "second"))
    assert (first, second) == ((200, "two(one(x))"), (200, "two(three(x))"))
    assert server.metric("msx_batch_size_sum", model="shared/two") == 2
    assert server.metric("msx_batch_size_count", model="shared/two") == 1
    assert len(server.worker_pids("shared")) == 3


def test_each_stage_has_a_process_and_its_own_settings(server: RunningServer) -> None:
    pids = {ask(server, "/predictions/chain", f"{name}!pid")[1] for name in ("one", "two", "three")}
    assert len({text.rpartition(":")[2] for text in pids}) == 3
    path = "/predictions/chain:short"
    seen: set[str] = set()
    with ThreadPoolExecutor(8) as pool:
        while len(seen) < 2:
            seen |= {text for _, text in pool.map(lambda _: ask(server, path, "two!env=PLACE"), range(16))}
    assert seen == {"two:first", "two:second"}
    assert ask(server, "/predictions/chain", "three!model")[1] == "three:chain:['note', 'routine']"


@pytest.mark.parametrize("stage", ["one", "two", "three"])
def test_a_failure_names_its_stage(server: RunningServer, stage: str) -> None:
    for command, status, word in (
        ("refuse=422", 422, "a sentence"),
        ("raises", 503, ""),
        ("status=418", 418, "a body"),
    ):
        content = f"{stage}!{command}"
        reply = server.inference.post("/predictions/chain", content=content, headers=TEXT)
        assert (reply.status_code, reply.headers["x-stage"]) == (status, stage)
        assert word in reply.text
        if status != 418:
            assert f"Error executing {stage}: " in reply.json()["message"]
            assert reply.json()["type"] == "PredictionException"


def test_values_arrive_as_they_were_returned(server: RunningServer) -> None:
    assert ask(server, "/predictions/chain", "one!array=3") == (200, "three(two(float32(1, 3)))")
    status, text = ask(server, "/predictions/chain", "two!an_object")
    assert (status, "object cannot be sent" in text) == (503, True), text


def test_the_last_stage_streams(server: RunningServer) -> None:
    answer = list("one(abc)")
    with server.inference.stream("POST", "/predictions/speaks", content="abc", headers=TEXT) as reply:
        assert [piece for piece in reply.iter_text() if piece]
        assert reply.headers["transfer-encoding"] == "chunked"
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        assert [one.prediction.decode() for one in stream(channel, "speaks", b"abc")] == answer
        assert predict(channel, "speaks:main", b"abc") == b"one(abc)"

    async def over_http2() -> str:
        async with httpx.AsyncClient(transport=Http2Transport(), base_url=server.info["inference"]) as client:
            return (await client.post("/predictions/speaks", content=b"abc", headers=TEXT)).text

    assert asyncio.run(over_http2()) == "one(abc)"


def test_no_other_stage_does(server: RunningServer) -> None:
    reply = server.inference.post("/predictions/speaks:wrong", content="abc", headers=TEXT)
    assert (reply.status_code, reply.headers["x-stage"]) == (500, "last")
    assert "only the last stage of a route may" in reply.json()["message"]


def test_grpc(server: RunningServer) -> None:
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        assert predict(channel, "chain", b"x") == b"three(two(one(x)))"
        assert predict(channel, "chain:short", b"x") == b"two(x)"
        code, message = failure(lambda: predict(channel, "chain", b"two!refuse=422"))
        assert "Error executing two: a sentence" in message
        assert code != "OK"


def test_a_diamond_with_a_bound_of_one(server: RunningServer) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = set(pool.map(lambda n: ask(server, "/predictions/diamond", f"{n}"), range(200)))
    assert answers == {(200, f"join(three=three(one({n}));two=two(one({n})))") for n in range(200)}


def test_a_client_that_leaves_and_one_that_is_late(server: RunningServer, tmp_path: Path) -> None:
    """The stage where the request is hears of it."""
    told = tmp_path / "told"
    client = begun(server, f"two!wait={told}")
    wait_until(Path(f"{told}.begun").exists, "the stage has begun", server.tail)
    client.close()
    wait_until(Path(f"{told}.left").exists, "the handler has heard of it", server.tail)
    late = tmp_path / "late"
    request = Request(model_name="chain", input={"body": f"two!wait={late}".encode()})
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        runs_out_of_time(partial(predictions(channel), request), Path(f"{late}.begun").exists)
    wait_until(Path(f"{late}.left").exists, "the handler has heard of it", server.tail)
    assert ask(server, "/predictions/chain")[0] == 200


def begun(server: RunningServer, content: str) -> socket.socket:
    """A request whose client leaves by closing the socket."""
    address = httpx.URL(server.info["inference"])
    client = socket.create_connection((address.host, address.port or 0))
    head = f"POST /predictions/chain HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: {len(content)}"
    client.sendall(f"{head}\r\n\r\n{content}".encode())
    return client


def test_a_worker_of_a_middle_stage_that_dies(server: RunningServer, tmp_path: Path) -> None:
    """Its request is answered at once; those with the other worker go on."""
    stages = {one["name"]: one for one in server.describe("chain")["stages"]}
    files = [tmp_path / "a", tmp_path / "b"]
    with ThreadPoolExecutor(2) as pool:
        replies = {}
        for file in files:  # the second goes to the other worker
            replies[file] = pool.submit(ask, server, "/predictions/chain", f"two!wait={file}")
            wait_until(Path(f"{file}.begun").exists, "the stage has begun", server.tail)
        os.kill(stages["two"]["workers"][0]["pid"], signal.SIGKILL)
        wait_until(lambda: any(reply.done() for reply in replies.values()), "its client is told", server.tail)
        (dead,) = [file for file in files if replies[file].done()]
        status, text = replies[dead].result()
        assert (status, f"Error executing two: {worker_died('')}" in text) == (507, True)
        (other,) = [file for file in files if file != dead]
        other.touch()
        assert replies[other].result()[0] == 200
    wait_until(lambda: server.describe("chain")["state"] == "READY", "it is ready again", server.tail)


def test_describe_and_metrics(server: RunningServer) -> None:
    described = server.describe("diamond")
    assert [one["name"] for one in described["stages"]] == ["one", "two", "three", "join"]
    assert described["stages"][3]["from"] == ["three", "two"]
    assert (described["stages"][2]["minWorkers"], described["minWorkers"], len(described["workers"])) == (2, 5, 5)
    assert (described["stages"][0]["batchSize"], described["stages"][0]["edgeCapacity"]) == (4, 1)
    assert (described["state"], described["stages"][0]["state"], described["stages"][0]["deviceType"]) == (
        "READY",
        "READY",
        "cpu",
    )
    ask(server, "/predictions/diamond")
    for name in ("diamond", "diamond/one", "diamond/join"):
        assert server.metric("msx_requests_total", model=name, code="200") >= 1
        assert server.metric("msx_request_seconds_count", model=name) >= 1
    for name in ("msx_batch_seconds_count", "msx_batch_size_count"):
        assert server.metric(name, model="diamond/join") >= 1
        assert server.metric(name, model="diamond") == 0, "its batches are those of its stages"
    assert server.metric("msx_workers_ready", model="diamond/three") == 2


SMALL = "stages: {one: {handler: stages.py:One}, two: {handler: stages.py:Two}}\nroutes: {/small: {}}\n"


def test_scaling_and_restarts(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    archive = pack_stages(store, "small", SMALL)
    pack_stages(store, "other", SMALL)
    pack_stages(store, "own", SMALL.replace("/small", "/predictions/x"))
    with run_server(tmp_path) as server:
        assert server.management.post("/models", params={"url": archive.name}).status_code == 200
        assert _workers(server) == {"one": (1, 1), "two": (1, 1)}
        for name, owner in (("other.mar", "that of model small"), ("own.mar", "one of the server's own")):
            reply = server.management.post("/models", params={"url": name})
            assert reply.status_code == 409
            assert owner in reply.json()["message"]
        reply = server.management.put("/models/small?stage=two&min_worker=2&synchronous=true")
        assert reply.json()["status"] == "Workers scaled to 2 for model: small, stage: two"
        reply = server.management.put("/models/small?stage=none&min_worker=2")
        assert (reply.status_code, "its stages are one, two" in reply.json()["message"]) == (400, True)
    with run_server(tmp_path) as server:
        assert _workers(server) == {"one": (1, 1), "two": (2, 2)}
        assert ask(server, "/small") == (200, "two(one(x))")
        reply = server.management.post("/models", params={"url": archive.name, "replace": "true"})
        assert reply.status_code == 200, reply.text
        assert ask(server, "/small") == (200, "two(one(x))")
        assert server.management.delete("/models/small").status_code == 200
        assert ask(server, "/small")[0] == 404


def _workers(server: RunningServer) -> dict[str, tuple[int, int]]:
    return {one["name"]: (one["minWorkers"], len(one["workers"])) for one in server.describe("small")["stages"]}
