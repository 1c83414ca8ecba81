"""Mosec's examples with clients of the same shape as theirs, which state no content type or another one."""

from __future__ import annotations

import base64
import gzip
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import psutil
import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.server import SERVICES, RunningServer, new_store, pack_service, run_server, wait_until
from tests.processes import children_of

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.e2e

SERVICE = "mosec_examples.py"
FORM = {"content-type": "application/x-www-form-urlencoded"}
"""The type that `curl -d` states."""


class Example(NamedTuple):
    """`stages` by name: the class, and its keys. `above` are keys of the service."""

    stages: dict[str, dict[str, Any]]
    above: dict[str, Any] = {}

    def config(self, service: str = SERVICE) -> dict[str, Any]:
        stages = {name: {"handler": f"{service}:{name}", **keys} for name, keys in self.stages.items()}
        routes = {"/inference": {"first": next(iter(stages)), "last": next(reversed(stages))}}
        return {"maxBatchDelay": 1, "stages": stages, "routes": routes, **self.above}


JSON, MSGPACK = {"bodies": "json", "replies": "json"}, {"bodies": "msgpack", "replies": "msgpack"}
EXAMPLES = {
    "echo": Example({"Seconds": {}, "Sleeps": {"batchSize": 32}, "Says": {}}, JSON),
    "custom_env": Example(
        {"Device": {"workers": 4, "env": [{"SERVICE_DEVICE": str(place)} for place in range(4)]}}, JSON
    ),
    "distil_bert_server_pytorch": Example(
        {"Tokens": {"workers": 2}, "Sentiment": {"batchSize": 32}}, {"bodies": "raw", "replies": "raw"}
    ),
    "jax_single_layer": Example({"Layer": {"batchSize": 8}}, JSON),
    "monitor": Example({"Average": {"workers": 2, "batchSize": 8}}, JSON),
    "embedding": Example(
        {"Embeddings": {}},
        {**JSON, "routes": {path: {"first": "Embeddings"} for path in ("/v1/embeddings", "/embeddings")}},
    ),
    "multi_route": Example(
        {
            "TypedStart": {},
            "RawStart": {"from": []},
            "Length": {"from": ["TypedStart", "RawStart"], "batchSize": 16},
            "Same": {},
        },
        {
            "routes": {
                "/v1/inference": {"first": "TypedStart", "last": "Same", **MSGPACK},
                "/inference": {"first": "RawStart", "last": "Length", "bodies": "raw", "replies": "json"},
            }
        },
    ),
    "rerank": Example({"Rerank": {}}, MSGPACK),
    "resnet50_msgpack": Example(
        {"Pixels": {"workers": 2}, "Classifies": {"workers": 2, "batchSize": 16}, "Category": {}}, MSGPACK
    ),
    "segment": Example({"Segments": {}}, {**MSGPACK, "compression": True}),
    "server_side_event": Example({"Text": {}, "Events": {"batchSize": 2}}, {"bodies": "json", "replies": "events"}),
    "shm_ipc": Example({"Producer": {"workers": 2}, "Consumer": {"workers": 2}}, JSON),
    "stable_diffusion": Example({"Draws": {"batchSize": 4}}, MSGPACK),
    "type_validation": Example({"TypedStart": {}, "PlainLength": {"batchSize": 16}}, MSGPACK),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("mosec")
    new_store(folder)
    with run_server(folder) as running:
        yield running


@contextmanager
def served(server: RunningServer, name: str, service: str = SERVICE, *files: Path) -> Iterator[str]:
    """The example, and no other one: the address of its server. Its archive has these files, too."""
    config = server.folder / f"{name}.yaml"
    config.write_bytes(msgspec.yaml.encode(EXAMPLES[name].config(service)))
    archive = pack(
        PackOptions(
            model_name=name,
            config_file=str(config),
            extra_files=",".join(map(str, (SERVICES / service, *files))),
            export_path=server.store,
            force=True,
        )
    )
    registered = server.management.post("/models", params={"url": archive.name, "synchronous": "true"})
    assert registered.status_code == 200, registered.text
    try:
        yield str(server.info["inference"])
    finally:
        assert server.management.delete(f"/models/{name}").status_code == 200


def test_echo(server: RunningServer) -> None:
    with served(server, "echo") as base:
        assert httpx.post(f"{base}/inference", json={"time": "0.01"}).json() == {"msg": "sleep 0.01 seconds"}
        by_curl = httpx.post(f"{base}/inference", content=b'{"time": 0}', headers=FORM)
        assert (by_curl.status_code, by_curl.json()) == (200, {"msg": "sleep 0.0 seconds"})
        missing = httpx.post(f"{base}/inference", json={"other": 1})
    assert missing.status_code == 422
    assert "cannot find key 'time'" in missing.json()["message"]


def test_custom_env(server: RunningServer) -> None:
    with served(server, "custom_env") as base:
        replies = [httpx.post(f"{base}/inference", json={"dummy": "0"}).json() for _ in range(12)]
    assert {one["device"] for one in replies} <= {"0", "1", "2", "3"}
    assert all(one["worker"] == int(one["device"]) + 1 for one in replies)


def test_a_worker_that_replaces_another_has_its_number(server: RunningServer) -> None:
    def seen(base: str) -> set[int]:
        with ThreadPoolExecutor(8) as pool:
            replies = pool.map(lambda _: httpx.post(f"{base}/inference", json={"dummy": "0"}).json(), range(32))
            return {one["worker"] for one in replies}

    with served(server, "custom_env") as base:
        wait_until(lambda: seen(base) == {1, 2, 3, 4}, "each worker has answered", server.tail)
        server.kill_worker(server.worker_pids("custom_env")[0], "custom_env")
        wait_until(lambda: seen(base) == {1, 2, 3, 4}, "each number has answered again", server.tail)


def test_an_empty_body_is_given_to_the_handler(server: RunningServer) -> None:
    with served(server, "distil_bert_server_pytorch") as base:
        assert httpx.post(f"{base}/inference").text == "positive=0.0"


def test_distil_bert_server_pytorch(server: RunningServer) -> None:
    """HTTPie states JSON of what it reads from a pipe, and curl a form."""
    text = b"i bought this & that, 100 % good"
    with served(server, "distil_bert_server_pytorch") as base:
        for stated in ({"content-type": "application/json"}, FORM, {}):
            reply = httpx.post(f"{base}/inference", content=text, headers=stated)
            assert (reply.status_code, reply.text) == (200, "positive=0.25"), stated
            assert reply.headers["content-type"] == "text/plain"


def test_jax_single_layer(server: RunningServer) -> None:
    with served(server, "jax_single_layer") as base:
        reply = httpx.post(f"{base}/inference", json={"array": [1, 2, 3]})
    assert reply.json() == {"category": 1, "warm": [1, 2, 3, 4, 5, 6, 7, 8]}


def test_monitor(server: RunningServer) -> None:
    with served(server, "monitor") as base:
        assert httpx.post(f"{base}/inference", json={"num": "1"}).json() is True
        wait_until(lambda: server.metric("inference_result_total", status="true") == 1, "it is counted", server.tail)


def test_embedding(server: RunningServer) -> None:
    """OpenAI's client asks for base64, and adds the path to its base URL, with or without `/v1`."""
    asked = {"model": "thenlper/gte-base", "input": "Hello world!"}
    with served(server, "embedding") as base:
        for path in ("/embeddings", "/v1/embeddings"):
            made = httpx.post(f"{base}{path}", json={**asked, "encoding_format": "base64"}).json()
            vector = np.frombuffer(base64.b64decode(made["data"][0]["embedding"]), np.float32)
            assert (vector.tolist(), made["object"]) == ([12.0, 0.5], "list")
            refused = httpx.post(f"{base}{path}", json={**asked, "model": "other"})
            assert (refused.status_code, "is not supported" in refused.text) == (400, True)


def test_multi_route(server: RunningServer) -> None:
    with served(server, "multi_route") as base:
        typed = {"bin": b"hello mosec with type check", "name": "type check"}
        reply = httpx.post(f"{base}/v1/inference", content=msgspec.msgpack.encode(typed))
        assert (reply.status_code, msgspec.msgpack.decode(reply.content)) == (200, {"length": 27})
        reply = httpx.post(f"{base}/inference", content=b"hello mosec")
        assert (reply.status_code, reply.json()) == (200, {"length": 11})
        wrong = httpx.post(f"{base}/v1/inference", content=msgspec.msgpack.encode({"name": "no bytes"}))
        assert (wrong.status_code, "bin is missing" in wrong.text) == (400, True)


def test_a_path_is_of_the_model_that_was_first(server: RunningServer) -> None:
    """A model that answers OpenAI's clients there cannot be loaded beside the service, nor the service beside it."""
    archive = pack_service("embeds", server.store)
    asked = {"url": archive.name, "initial_workers": "1", "synchronous": "true"}
    with served(server, "embedding"):
        refused = server.management.post("/models", params=asked)
    text = "Model embeds answers /v1/embeddings (embed), which is a path of model embedding (routes)"
    assert (refused.status_code, text in refused.text) == (500, True), refused.text
    assert server.management.post("/models", params=asked).status_code == 200
    refused = server.management.post("/models", params={"url": "embedding.mar"})
    assert server.management.delete("/models/embeds").status_code == 200
    text = "Path /v1/embeddings of model embedding (routes) is answered by model embeds (embed)"
    assert (refused.status_code, text in refused.text) == (409, True), refused.text


def test_rerank(server: RunningServer) -> None:
    asked = {"query": "talk is cheap", "docs": ["what a nice day", "life is short"]}
    with served(server, "rerank") as base:
        reply = httpx.post(f"{base}/inference", content=msgspec.msgpack.encode(asked))
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/msgpack")
    assert len(msgspec.msgpack.decode(reply.content)["scores"]) == 2


def test_resnet50_msgpack(server: RunningServer) -> None:
    with served(server, "resnet50_msgpack") as base:
        reply = httpx.post(f"{base}/inference", content=msgspec.msgpack.encode({"image": b"\xf0" * 9}))
        assert msgspec.msgpack.decode(reply.content) == {"category": "dog"}
        assert httpx.post(f"{base}/inference", content=msgspec.msgpack.encode({"other": 1})).status_code == 422


def test_segment(server: RunningServer) -> None:
    """Its client compresses, and takes compressed replies; a service that has not said so refuses it."""
    image = np.arange(64 * 48 * 3, dtype=np.uint8).reshape(64, 48, 3)
    file = io.BytesIO()
    np.save(file, image)
    body = gzip.compress(msgspec.msgpack.encode({"image": file.getvalue(), "labels": [1, 1]}))
    headers = {"Accept-Encoding": "gzip", "Content-Encoding": "gzip"}
    with served(server, "segment") as base:
        for path in ("/inference", "/predictions/segment"):
            reply = httpx.post(f"{base}{path}", content=body, headers=headers)
            assert (reply.status_code, reply.headers["content-encoding"]) == (200, "gzip"), reply.text
            mask = np.load(io.BytesIO(msgspec.msgpack.decode(reply.content)))
            assert mask.shape == image.shape[:2]
        plain = httpx.post(f"{base}/inference", content=gzip.decompress(body), headers={"Accept-Encoding": "identity"})
        assert (plain.content, "content-encoding" in plain.headers) == (reply.content, False)
        broken = httpx.post(f"{base}/inference", content=b"no gzip", headers=headers)
        assert (broken.status_code, "The body is not gzip" in broken.text) == (400, True)
    with served(server, "stable_diffusion") as base:
        refused = httpx.post(f"{base}/inference", content=body, headers=headers)
    assert (refused.status_code, refused.headers["accept-encoding"]) == (415, "identity")
    assert "set compression: true in its model-config.yaml" in refused.text


def events_of(base: str, body: Any) -> list[tuple[str, str]]:
    """The events of a whole stream, by name and data."""
    with httpx.stream("POST", f"{base}/inference", json=body) as reply:
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/event-stream")
        whole = reply.read().decode()
    found = []
    for block in filter(None, whole.split("\n\n")):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((fields.get("event", "message"), fields["data"]))
    return found


def test_server_side_event(server: RunningServer) -> None:
    with served(server, "server_side_event") as base:
        assert events_of(base, {"text": "mosec"}) == [
            ("message", f"inference: ({epoch}/5) mosec") for epoch in range(1, 6)
        ]
        ((name, data),) = events_of(base, {"error": "mosec"})
        assert (name, msgspec.json.decode(data)["code"]) == ("error", 422)
        assert "text is required" in data
        first, (name, data) = events_of(base, {"text": "fail"})
        assert (first, name, "in the middle" in data) == (("message", "before"), "error", True)


def test_shm_ipc(server: RunningServer) -> None:
    with served(server, "shm_ipc") as base:
        reply = httpx.post(f"{base}/inference", json={"size": "20000"})
        assert reply.json()["ipc test data"][-1] == 19999 / 8
        assert httpx.post(f"{base}/inference", json={"siz": 1}).status_code == 422


def test_no_other_processes_come_with_a_service_than_workers(server: RunningServer) -> None:
    """And what they are joined by has no names on disk."""
    process = psutil.Process(server.process.pid)
    before = {one.pid for one in children_of(process, recursive=True)}
    with served(server, "shm_ipc") as base:
        assert httpx.post(f"{base}/inference", json={"size": "20000"}).status_code == 200
        workers = server.worker_pids("shm_ipc")
        come = {one.pid for one in children_of(process, recursive=True)} - before
        names = [str(one.laddr or "") for pid in workers for one in psutil.Process(pid).net_connections("unix")]
    assert (come, len(workers)) == ({*workers}, 4)
    assert (len(names) >= 8, {*names}) == (True, {""})


def test_stable_diffusion(server: RunningServer) -> None:
    with served(server, "stable_diffusion") as base:
        reply = httpx.post(f"{base}/inference", content=msgspec.msgpack.encode("a cute cat"))
    assert msgspec.msgpack.decode(reply.content) == b"\xff\xd8a cute cat"


def test_type_validation(server: RunningServer) -> None:
    with served(server, "type_validation") as base:
        asked = {"bin": b"hello mosec", "name": "type check"}
        reply = httpx.post(f"{base}/inference", content=msgspec.msgpack.encode(asked))
        assert msgspec.msgpack.decode(reply.content) == 11
        wrong = httpx.post(f"{base}/inference", content=msgspec.msgpack.encode({"bin": 5}))
        assert (wrong.status_code, "expected `bytes`, got `int`" in wrong.text) == (400, True)
