"""`service_envelope` wraps every handler of the server.

contract#envelopes
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.torchserve.handlers import archive_of
from tests.contract.torchserve.setup import Setup, serving
from tests.contract.torchserve.shapes import assert_error
from tests.e2e.server import RunningServer

pytestmark = pytest.mark.e2e


def prepare(store: Path) -> None:
    archive_of("seen", store)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningServer]]:
    """One a kind of envelope, started when it is asked for."""
    running = _Servers(tmp_path_factory)
    yield running
    running.close()


class _Servers(dict[str, RunningServer]):
    def __init__(self, factory: pytest.TempPathFactory) -> None:
        super().__init__()
        self._factory = factory
        self._open: list[AbstractContextManager[RunningServer]] = []

    def __missing__(self, envelope: str) -> RunningServer:
        setup = Setup(prepare=prepare, load=("seen.mar",), properties=f"service_envelope={envelope}\n")
        manager = serving(setup, self._factory.mktemp(envelope))
        self[envelope] = manager.__enter__()
        self._open.append(manager)
        return self[envelope]

    def close(self) -> None:
        for manager in self._open:
            manager.__exit__(None, None, None)


def test_body(servers: dict[str, RunningServer]) -> None:
    server = servers["body"]
    assert server.predict("seen", b"x").text == "bytearray(b'x')"
    assert server.predict("seen", {"a": 1}).text == "{'a': 1}"
    assert server.inference.post("/predictions/seen", data={"data": "field"}).text == "bytearray(b'field')"


@pytest.mark.parametrize("envelope", ["json", "kserve"])
@pytest.mark.parametrize("raw", [False, True])
def test_instances(servers: dict[str, RunningServer], envelope: str, raw: bool) -> None:
    """One entry an instance; base64 is decoded. Bodies without a content type are read as JSON."""
    body = b'{"instances": [1, {"b64": "aGk="}, {"data": 2}]}'
    headers = {} if raw else {"content-type": "application/json"}
    reply = servers[envelope].predict("seen", body, headers=headers)
    assert reply.status_code == 200, reply.text
    assert reply.json() == {"predictions": ["1", "b'hi'", "{'data': 2}"]}
    assert ("\n" in reply.text) == (envelope == "kserve"), "TorchServe writes the one on one line, the other indented"


def test_kserve_explanations(servers: dict[str, RunningServer]) -> None:
    reply = servers["kserve"].inference.post("/explanations/seen", json={"instances": [1]})
    assert reply.json() == {"explanations": ["1"]}


def v2(*inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"inputs": list(inputs), **more}


FLOATS = {"name": "a", "shape": [2, 2], "datatype": "FP32", "data": [1, 2, 3, 4.5]}
INTS = {"name": "b", "shape": [3], "datatype": "INT64", "data": [1, 2, 3]}
TEXT = {"name": "c", "shape": [1], "datatype": "BYTES", "data": ["hello"]}


def test_kservev2(servers: dict[str, RunningServer]) -> None:
    """Shaped inputs, one dict each; the output of input i bears its name."""
    reply = servers["kservev2"].predict("seen", v2(FLOATS, INTS, TEXT, id="7"))
    assert reply.status_code == 200, reply.text
    assert reply.json() == {
        "id": "7",
        "model_name": "seen",
        "model_version": "1.0",
        "outputs": [
            {"name": "a", "datatype": "FP64", "data": [1.0, 2.0, 3.0, 4.5], "shape": [2, 2]},
            {"name": "b", "datatype": "INT64", "data": [1, 2, 3], "shape": [3]},
            {"name": "c", "datatype": "BYTES", "data": ["hello"], "shape": []},
        ],
    }


def test_kservev2_on_its_own_route(servers: dict[str, RunningServer]) -> None:
    """The handler sees the same, and so does the client, whether its tensors are JSON or bytes."""
    server = servers["kservev2"]
    floats = {"name": "a", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}
    text = {"name": "c", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 9}}
    head = json.dumps({"inputs": [floats, text], "id": "8"}).encode()
    body = head + struct.pack("<2f", 1.5, 2.5) + struct.pack("<I", 5) + b"hello"
    size = {"Inference-Header-Content-Length": str(len(head))}
    for reply in (
        server.inference.post("/v2/models/seen/infer", content=body, headers=size),
        server.inference.post("/v2/models/seen/infer", json=v2({**INTS, "data": [1, 2, 3]}, TEXT, id="8")),
    ):
        assert reply.status_code == 200, reply.text
        answer = reply.json()
        assert (answer["id"], answer["model_name"], answer["model_version"]) == ("8", "seen", "1.0")
        number, word = answer["outputs"]
        assert (word["name"], word["datatype"], word["data"]) == ("c", "BYTES", ["hello"])
        assert number["data"] == ([1.5, 2.5] if number["name"] == "a" else [1, 2, 3])


def test_kservev2_takes_the_requests_id(servers: dict[str, RunningServer]) -> None:
    reply = servers["kservev2"].predict("seen", v2(INTS))
    assert reply.json()["id"] == reply.headers["x-request-id"]


@pytest.mark.parametrize(
    ("envelope", "body", "message"),
    [
        ("json", b"no json", "body is not valid JSON: line 1, column 1"),
        ("json", b"[1]", "body: expected a JSON object with 'instances', got a list"),
        ("json", b"{}", "'instances' must be a list, and it is missing"),
        ("kserve", b'{"instances": 1}', "'instances' must be a list, and it is int"),
        ("kserve", b'{"instances": [{"b64": "?"}]}', "'b64' holds no base64 text"),
        ("kservev2", b"{}", "'inputs' must be a list, and it is missing"),
        ("kservev2", b'{"inputs": [1]}', "'inputs' must be a list of objects, and one is int"),
        ("kservev2", b'{"inputs": [{"name": "a"}]}', "input 'a' lacks 'shape', 'datatype', 'data'"),
        (
            "kservev2",
            b'{"inputs": [{"name": "a", "shape": [3], "datatype": "INT8", "data": [1]}]}',
            "input 'a': data has 1 values, and shape [3] needs 3",
        ),
        (
            "kservev2",
            b'{"inputs": [{"name": "a", "shape": [1], "datatype": "INT", "data": [1]}]}',
            "input 'a': datatype 'INT' is none of BOOL, UINT8",
        ),
    ],
)
def test_bad_input_is_400(servers: dict[str, RunningServer], envelope: str, body: bytes, message: str) -> None:
    """TorchServe: 503 Prediction failed."""
    assert_error(servers[envelope].predict("seen", body), 400, "InternalServerException", message, exact=False)


@pytest.mark.parametrize("envelope", ["json", "kserve"])
def test_an_error_of_the_handler(servers: dict[str, RunningServer], envelope: str) -> None:
    reply = servers[envelope].predict("seen", {"instances": ["raise"]})
    assert_error(reply, 503, "InternalServerException", "Prediction failed: ValueError: as asked")
