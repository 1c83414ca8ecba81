"""Typed requests over HTTP/1.1, HTTP/2 and gRPC, what describes them, and a fuzz of their bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator

from msx_core.packed import pack, unpack
from tests.contract.torchserve.grpc_client import INFERENCE, stub_of
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

np = pytest.importorskip("numpy")
pytest.importorskip("grpc")

pytestmark = pytest.mark.e2e

JSON, MSGPACK = "application/json", "application/msgpack"
TYPES = (JSON, MSGPACK, "application/x-msgpack", "application/vnd.msgpack", "", "text/plain", "multipart/form-data")
ACCEPTS = ("", "*/*", JSON, MSGPACK, f"{MSGPACK};q=0.5, {JSON};q=0.1", "q=;,")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("typed")
    pack_service("typed", new_store(folder), config="batchSize: 4\nmaxBatchDelay: 1\n")
    with run_server(folder, "--models", "typed.mar") as running:
        yield running


def asked(server: RunningServer, body: bytes, stated: str, accept: str = "") -> httpx.Response:
    headers = {name: value for name, value in (("content-type", stated), ("accept", accept)) if value}
    return server.predict("typed", body, headers=headers)


def test_json_and_messagepack(server: RunningServer) -> None:
    reply = asked(server, b'{"text": "a", "points": [{"x": 1, "label": "b"}], "rows": [[1, 2]]}', JSON)
    assert reply.headers["content-type"] == JSON
    assert reply.json() == {"text": "A", "points": [{"x": 1, "label": "b"}], "rows": [[1, 2]], "extra": None}
    body = pack({"text": "a", "rows": np.ones((2, 2), np.float32)})
    reply = asked(server, body, "application/x-msgpack", MSGPACK)
    assert reply.headers["content-type"] == MSGPACK
    assert unpack(reply.content)["rows"].tolist() == [[1, 1], [1, 1]]


def test_what_is_wrong_is_said_by_its_path(server: RunningServer) -> None:
    reply = asked(server, b'{"text": "a", "points": [{"x": 1}, {"x": "many"}]}', JSON)
    text = 'The request does not fit Query: points[1].x: expected `int`, got `str` ("many").'
    assert (reply.status_code, reply.json()) == (
        400,
        {"code": 400, "type": "InternalServerException", "message": text},
    )


def test_grpc(server: RunningServer) -> None:
    with stub_of(server, INFERENCE) as stub:
        reply = stub.Predictions(model_name="typed", input={"data": b'{"text": "a"}'})
        fields = stub.Predictions(model_name="typed", input={"text": b"a", "points": b'[{"x": 1, "label": "b"}]'})
    assert msgspec.json.decode(fields.prediction)["points"] == [{"x": 1, "label": "b"}]
    assert msgspec.json.decode(reply.prediction)["text"] == "A"


def test_descriptions(server: RunningServer) -> None:
    assert "methods" not in server.describe("typed")  # clients call none by name
    whole = server.inference.get("/openapi.json").json()
    OpenAPIV31SpecValidator(whole).validate()
    request = whole["paths"]["/predictions/typed"]["post"]["requestBody"]["content"]
    schema = {"schema": {"$ref": "#/components/schemas/TypedRequestQuery"}}
    assert (request[MSGPACK], request[JSON]) == (schema, {**schema, "example": {"text": "text"}})
    assert asked(server, msgspec.json.encode(request[JSON]["example"]), JSON).status_code == 200
    assert whole["components"]["schemas"]["TypedRequestQuery"]["required"] == ["text"]
    own = server.inference.options("/predictions/typed").json()
    OpenAPIV31SpecValidator(own).validate()
    reply = own["paths"]["/predictions/typed"]["post"]["responses"]["200"]["content"][JSON]["schema"]
    assert reply == {"$ref": "#/components/schemas/ReplyFound"}


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)
MEMBERS = st.sampled_from(["text", "top", "points", "rows", "extra", "x", "other"])
OBJECTS = st.fixed_dictionaries({"text": st.text(max_size=20)}) | st.dictionaries(MEMBERS, VALUES, max_size=5)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Objects that fit or nearly do, as JSON or MessagePack, some cut off, changed or nested deeply; and any bytes."""
    made = draw(st.sampled_from(["object", "cut", "changed", "deep", "array", "extension", "bytes"]))
    if made == "bytes":
        return draw(st.binary(max_size=100))
    if made == "deep":
        depth = draw(st.sampled_from([5, 99, 101, 500, 5000]))
        inner = draw(st.sampled_from([b"[%s]", b'{"a":%s}'])) % b"1"
        return b'{"text": "a", "extra": ' + b"[" * depth + inner + b"]" * depth + b"}"
    if made == "array":
        shape = draw(st.lists(st.integers(0, 2**64 - 1), max_size=40))
        head = b"".join(size.to_bytes(8, "little") for size in shape)
        data = b"\x07float32" + bytes([len(shape)]) + head + draw(st.binary(max_size=16))
        return msgspec.msgpack.encode({"text": "a", "rows": msgspec.msgpack.Ext(1, data)})
    if made == "extension":
        code, data = draw(st.integers(-128, 127)), draw(st.binary(max_size=20))
        return msgspec.msgpack.encode({"text": "a", "extra": msgspec.msgpack.Ext(code, data)})
    body = encoded(draw(OBJECTS | VALUES), draw(st.booleans()))
    at = draw(st.integers(0, len(body)))
    if made == "cut":
        return body[:at]
    return body[:at] + draw(st.binary(max_size=3)) + body[at:] if made == "changed" else body


def encoded(value: Any, as_json: bool) -> bytes:
    try:
        return msgspec.json.encode(value) if as_json else msgspec.msgpack.encode(value)
    except OverflowError:
        return msgspec.json.encode(value)


@pytest.mark.parametrize("cases", [150, pytest.param(20_000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_a_fuzz_of_bodies(server: RunningServer, cases: int) -> None:
    """Whatever is sent gets a reply of its own: never a failure of the server or the handler, never none."""

    @settings(max_examples=cases, suppress_health_check=list(HealthCheck), database=None)
    @given(bodies(), st.sampled_from(TYPES), st.sampled_from(ACCEPTS))
    def one(body: bytes, stated: str, accept: str) -> None:
        reply = asked(server, body, stated, accept)
        assert reply.status_code in (200, 400, 415), (reply.status_code, reply.text)

    one()
    assert len(server.worker_pids("typed")) == 1
    assert asked(server, b'{"text": "a"}', JSON).status_code == 200
