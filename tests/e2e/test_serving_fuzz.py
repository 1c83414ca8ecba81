"""Whatever is sent to the routes of MindSpore Serving gets an answer of their form: never a failure, never none."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msx_mindspore_serving.packages.mindspore_serving.proto import ms_service_pb2 as pb
from msx_mindspore_serving.packages.mindspore_serving.proto.ms_service_pb2_grpc import MSServiceStub
from tests.e2e.server import WATCHDOG, RunningServer, new_store, pack_service, run_server

pytestmark = pytest.mark.e2e

CASES = [150, pytest.param(20_000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
TYPES = ("int8", "int32", "uint64", "fp16", "float32", "fp64", "bool", "str", "bytes", "other", "", 1, None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("fuzz")
    pack_service("methods", new_store(folder), version="1", config="batchSize: 8\n")
    with run_server(folder, "--models", "methods.mar") as running:
        yield running


SIZES = st.integers(0, 3) | st.sampled_from([-1, 1 << 31, 1 << 33, 1 << 62])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
BASE64 = st.binary(max_size=12).map(lambda data: b64encode(data).decode()) | st.text("AB=/+-", max_size=9) | SCALARS
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "b64": BASE64,
        "type": st.sampled_from(TYPES),
        "shape": st.lists(SIZES | SCALARS, max_size=3),
        "x": SCALARS,
    },
)
VALUES = st.recursive(
    SCALARS | OBJECTS | st.lists(st.integers(-5, 5), max_size=4) | st.lists(st.floats(width=32), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)
INSTANCES = st.dictionaries(st.sampled_from(["x", "x1", "x2", ""]), VALUES, max_size=3)
DOCUMENTS = st.fixed_dictionaries({"instances": INSTANCES | st.lists(INSTANCES, max_size=5) | VALUES}) | VALUES
TARGETS = st.sampled_from(
    ["/model/methods:same", "/model/methods:add", "/model/methods/version/1:same", "/version/x/model/methods:same"]
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    body = json.dumps(draw(DOCUMENTS)).encode()
    at = draw(st.integers(0, len(body)))
    made = draw(st.sampled_from(["whole", "whole", "whole", "cut", "changed"]))
    if made == "cut":
        return body[:at]
    return body[:at] + draw(st.binary(max_size=3)) + body[at:] if made == "changed" else body


def fuzz(cases: int) -> settings:
    return settings(max_examples=cases, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.parametrize("cases", CASES)
def test_bodies(server: RunningServer, cases: int) -> None:
    @fuzz(cases)
    @given(TARGETS, bodies())
    def one(target: str, body: bytes) -> None:
        reply = server.inference.post(target, content=body, timeout=WATCHDOG)
        assert reply.status_code == 200
        (name,) = answer = reply.json()
        assert name in ("error_msg", "instances")
        if name == "instances":
            sent = json.loads(body)["instances"]
            assert len(answer["instances"]) == (len(sent) if isinstance(sent, list) else 1)

    one()
    assert_alive(server)


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    tensor = pb.Tensor(dtype=draw(st.integers(0, 16)), bytes_val=draw(st.lists(st.binary(max_size=4), max_size=2)))
    tensor.shape.dims.extend(draw(st.lists(SIZES, max_size=3)))
    if draw(st.booleans()):
        tensor.data = draw(st.binary(max_size=16) | st.integers(0, 16).map(bytes))
    elif draw(st.booleans()):
        tensor.shm_data.memory_key = "key"
    return tensor


@st.composite
def requests(draw: st.DrawFn) -> Any:
    spec = {"name": "methods", "method_name": draw(st.sampled_from(["same", "add", "none"]))}
    request = pb.PredictRequest(servable_spec={**spec, "version_number": draw(st.integers(0, 2))})
    for _ in range(draw(st.integers(0, 3))):
        instance = request.instances.add()
        for name in draw(st.lists(st.sampled_from(["x", "x1", "x2"]), unique=True)):
            instance.items[name].CopyFrom(draw(tensors()))
        if draw(st.integers(0, 9)) == 0:
            instance.output_buffers["y"].memory_key = "key"
    return request


@pytest.mark.parametrize("cases", CASES)
def test_messages(server: RunningServer, cases: int) -> None:
    @fuzz(cases)
    @given(requests())
    def one(request: Any) -> None:
        reply = stub.Predict(request, timeout=WATCHDOG)
        assert reply.servable_spec == request.servable_spec
        assert len(reply.error_msg) in (0, 1, len(request.instances))
        whole = len(reply.error_msg) == 1 and not reply.instances
        assert whole or len(reply.instances) == len(request.instances) > 0

    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        stub = MSServiceStub(channel)
        one()
    assert_alive(server)


def assert_alive(server: RunningServer) -> None:
    assert len(server.worker_pids("methods")) == 1
    reply = server.inference.post("/model/methods:same", content=b'{"instances":{"x":1}}')
    assert reply.json() == {"instances": [{"x": 1}]}
