"""MindSpore Serving's REST and gRPC against methods of a handler, by its own client and by HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import pytest

from msx_mindspore_serving.packages.mindspore_serving.client import Client
from tests.e2e.server import WATCHDOG, RunningServer, new_store, pack_service, run_server
from tests.http2_transport import Http2Transport
from tests.phrases import worker_died

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("serving")
    store = new_store(folder)
    pack_service("methods", store, version="2", config="batchSize: 8\nminWorkers: 2\n")
    with run_server(folder, "--models", "methods.mar") as running:
        yield running


def ask(server: RunningServer, method: str, *instances: dict[str, Any]) -> tuple[int, Any]:
    reply = server.inference.post(f"/model/methods:{method}", content=json.dumps({"instances": instances}))
    assert reply.headers["content-type"] == "application/json"
    return reply.status_code, reply.json()


def test_instances_over_rest(server: RunningServer) -> None:
    instances = [{"x1": [n, 1], "x2": [1, n]} for n in range(300)]
    assert ask(server, "add", *instances) == (200, {"instances": [{"y": [n + 1, n + 1]} for n in range(300)]})
    mixed = {"t": "ä", "b": {"b64": "AAE="}, "f": 0.1, "s": ["one"], "z": {"b64": "", "type": "fp16", "shape": [2, 0]}}
    assert ask(server, "same", mixed) == (200, {"instances": [{**mixed, "f": 0.10000000149011612, "z": [[], []]}]})
    found = ask(server, "pick", {"x": "good"}, {"x": "bad"}, {"x": "best"})
    assert found == (200, {"instances": [{"x": "good"}, {"error_msg": "Call pick Failed"}, {"x": "best"}]})
    assert ask(server, "pick", {"x": "bad"}, {"x": "bad"}) == (200, {"error_msg": "Call pick Failed"})
    large = [[float(n) for n in range(200)] for _ in range(200)]
    assert ask(server, "same", {"x": large}) == (200, {"instances": [{"x": large}]})


def test_refusals_and_versions_over_both_versions_of_http(server: RunningServer) -> None:
    paths = (
        "/model/methods:none",
        "/model/methods/version/9:add",
        "/version/2/model/methods:add",
        "/model/methods:add",
    )

    async def asked(transport: httpx.AsyncBaseTransport) -> list[Any]:
        async with httpx.AsyncClient(transport=transport, base_url=server.info["inference"]) as client:
            body = b'{"instances":{"x1":1,"x2":2}}'
            replies = [await client.post(path, content=body) for path in paths]
            replies += [await client.get(paths[0]), await client.post(paths[0], content=b"{")]
            return [(reply.status_code, reply.json()) for reply in replies]

    first, second = (asyncio.run(asked(one)) for one in (httpx.AsyncHTTPTransport(), Http2Transport()))
    assert first == second
    assert {status for status, _ in first} == {200}
    assert [reply.get("error_msg", reply.get("instances")) for _, reply in first[:4]] == [
        "Request servable(methods) method(none) , method is not available",
        "Request servable(methods) method(add)  version(9) , servable is not available",
        [{"y": 3}],
        [{"y": 3}],
    ]


def test_the_client(server: RunningServer) -> None:
    client = Client(server.info["grpc_inference"], "methods", "add", version_number=2)
    x1, x2 = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    found = client.infer([{"x1": x1, "x2": x2}, {"x1": "a", "x2": "b"}])
    assert np.array_equal(found[0]["y"], x1 + 1)
    assert found[0]["y"].dtype == np.float32
    assert found[1] == {"y": "ab"}
    later: list[Any] = [client.infer_async({"x1": n, "x2": 1}) for n in range(50)]
    assert [one.result()[0]["y"].tolist() for one in later] == [[n + 1] for n in range(50)]
    assert client.infer({"x1": 1}) == {"error": "Cannot find input x2 in instance input , servable methods, method add"}
    mixed = Client(server.info["grpc_inference"], "methods", "pick").infer([{"x": "bad"}, {"x": "good"}])
    assert mixed == [{"error": "Call pick Failed"}, {"x": "good"}]


def test_the_service_is_in_the_reflection(server: RunningServer) -> None:
    from google.protobuf.descriptor_pool import DescriptorPool
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        known = ProtoReflectionDescriptorDatabase(channel)
        service = DescriptorPool(known).FindServiceByName("mindspore.serving.proto.MSService")
        assert [method.name for method in service.methods] == ["Predict"]


def test_a_worker_that_dies(server: RunningServer) -> None:
    status, reply = ask(server, "exit", {"x": 1})
    assert status == 200
    assert reply["error_msg"].startswith(worker_died(""))


def test_a_missing_key(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    pack_service("methods", store)
    with run_server(tmp_path, "--models", "methods.mar", tokens=True) as server:
        url, body = f"{server.info['inference']}/model/methods:same", b'{"instances":{"x":1}}'
        refused = httpx.post(url, content=body, timeout=WATCHDOG)
        assert (refused.status_code, [*refused.json()]) == (401, ["error_msg"])
        assert server.inference.post(url, content=body).json() == {"instances": [{"x": 1}]}
        found = Client(server.info["grpc_inference"], "methods", "same").infer({"x": 1})
        assert found["error"].startswith("Grpc Error, (7, 'permission denied'), ")
