"""The client library against a real server, over HTTP/1.1, HTTP/2 and gRPC, waiting and on a loop, by one table."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from msx_client import (
    AsyncClient,
    Client,
    ConflictError,
    ModelFailedError,
    MsxError,
    NotFoundError,
    NotServedError,
    UnauthorizedError,
    UnavailableError,
    UnreachableError,
)
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.free_ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

WAYS = ("http", "http2", "grpc", "async http", "async http2", "async grpc")
SEQUENCES = "sequenceBatching: true\nmaxNumSequence: 4\nsequenceMaxIdleMSec: 60000\n"


class Both:
    """A client of either kind as one that waits: what is awaitable is awaited, streams are read to their end."""

    def __init__(self, server: RunningServer, way: str, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        rpc = way.endswith("grpc")
        url = "grpc://" + server.info["grpc_inference"] if rpc else server.info["inference"]
        management = "grpc://" + server.info["grpc_management"] if rpc else server.info["management"]
        options = {"key_file": server.info.get("key_file"), "http2": way.endswith("http2"), **options}
        make = AsyncClient if way.startswith("async") else Client
        self._client = make(url, management_url=management, **options)
        self.way, self.rpc = way, rpc

    def __call__(self, method: Callable[[Any], Any]) -> Any:
        return self._loop.run_until_complete(_awaited(method, self._client))

    def close(self) -> None:
        self(lambda client: client.close())
        self._loop.close()


async def _awaited(method: Callable[[Any], Any], client: Any) -> Any:
    result = method(client)
    if inspect.isasyncgen(result):
        return [piece async for piece in result]
    if inspect.isgenerator(result):
        return list(result)
    return await result if inspect.isawaitable(result) else result


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("client")
    store = new_store(folder)
    for service in ("echo", "norms", "methods", "raises"):
        pack_service(service, store)
    pack_service("parrot", store, config="maxConcurrent: 8")
    pack_service("sums", store, config=SEQUENCES)
    pack_service("counts", store)
    models = ["counts.mar", "parrot.mar", "echo.mar", "norms.mar", "methods.mar", "raises.mar", "sums.mar"]
    with run_server(folder, "--models", *models, tokens=True) as running:
        yield running


@pytest.fixture(params=WAYS)
def client(request: pytest.FixtureRequest, server: RunningServer) -> Iterator[Both]:
    both = Both(server, request.param)
    yield both
    both.close()


def test_predictions(client: Both) -> None:
    assert client(lambda one: one.predict("echo", b"\x00\x01")) == b"\x00\x01"
    assert client(lambda one: one.predict("echo", b"x", version="1.0")) == b"x"
    assert client(lambda one: one.predict("echo", "grüße")) == "grüße".encode()
    value = client(lambda one: one.predict("echo", {"a": [1, None]}))
    assert (json.loads(value) if client.rpc else value) == {"a": [1, None]}


def test_arrays(client: Both) -> None:
    np = pytest.importorskip("numpy")
    rows = np.array([[3, 4, 0], [1, 2, 2]], np.float32)
    found = client(lambda one: one.infer("norms", {"rows": rows}))
    assert found["norm"].tolist() == [5.0, 3.0]
    assert found["norm"].dtype == np.float32
    metadata = client(lambda one: one.metadata("norms"))
    assert [(one["name"], one["datatype"], one["shape"]) for one in metadata["inputs"]] == [("rows", "FP32", [-1, 3])]


def test_streams(client: Both) -> None:
    assert b"".join(client(lambda one: one.stream("counts", b"3"))) == b"1\n2\n3\n"


def test_methods(client: Both) -> None:
    if not client.rpc:
        assert client(lambda one: one.predict("methods", {"x": 1}, method="same")) == {"body": {"x": 1}}
    with pytest.raises(MsxError, match="nothing_such"):
        client(lambda one: one.predict("methods", b"", method="nothing_such"))


def test_sequences(client: Both) -> None:
    sequence = client(lambda one: one.sequence("sums"))
    answers = [client(lambda _: sequence.predict("1")), client(lambda _: sequence.predict("2", last=True))]
    assert [json.loads(one) if client.rpc else one for one in answers] == [{"sum": 1}, {"total": 3}]
    with pytest.raises(ValueError, match="has ended"):
        client(lambda _: sequence.predict("3"))


def test_texts(client: Both) -> None:
    reply = client(lambda one: one.generate("parrot", "a b c", max_tokens=2))
    pieces = client(lambda one: one.generate_stream("parrot", "a b c", max_tokens=3))
    assert "".join(piece.text for piece in pieces).split() == ["a", "b", "c"]
    assert len(pieces) >= 3
    assert reply.text.split() == ["a", "b"]
    chat = [{"role": "user", "content": "x y"}]
    said = client(lambda one: one.chat("parrot", chat, max_tokens=50)).content
    assert said
    assert "".join(piece.text for piece in client(lambda one: one.chat_stream("parrot", chat, max_tokens=50))) == said
    if not client.rpc:
        assert (reply.finish_reason, reply.usage["completion_tokens"]) == ("length", 2)
        with pytest.raises(NotFoundError, match="nobody"):
            client(lambda one: one.generate("nobody", "a"))


def test_a_closed_stream_is_cancelled(client: Both, server: RunningServer) -> None:
    """The handler is told, and stops."""
    before = cancelled(server)

    async def leave(one: Any) -> None:
        stream = one.generate_stream("parrot", "hang a b", max_tokens=9)
        if inspect.isgenerator(stream):
            next(stream)
            stream.close()
        else:
            await anext(stream)
            await stream.aclose()

    client(leave)
    wait_until(lambda: cancelled(server) == before + 1, "the request was cancelled", server.tail)


def cancelled(server: RunningServer) -> int:
    described = server.management.get("/models/parrot", params={"customized": "true"}).json()[0]
    return int(described["customizedMetadata"]["cancelled"])


def test_errors(client: Both) -> None:
    with pytest.raises(NotFoundError, match="Model not found: nobody") as caught:
        client(lambda one: one.predict("nobody"))
    assert caught.value.request_id
    with pytest.raises(NotFoundError):
        client(lambda one: one.predict("echo", version="7"))
    with pytest.raises(ModelFailedError, match="no luck"):
        client(lambda one: one.predict("raises"))
    with pytest.raises(ModelFailedError, match="no luck"):
        client(lambda one: one.stream("raises"))


def test_aliases(client: Both) -> None:
    if client.rpc:
        with pytest.raises(NotServedError, match="not replaced over gRPC: use the server's HTTP address"):
            client(lambda one: one.models.replace_aliases("echo", ["org/echo"]))
        return
    said = client(lambda one: one.models.replace_aliases("echo", ["org/echo"]))
    assert said == 'Model "echo" has the aliases org/echo'
    assert client(lambda one: one.predict("org/echo", b"x")) == b"x"
    with pytest.raises(ConflictError, match="is an alias of model echo"):
        client(lambda one: one.models.replace_aliases("norms", ["org/echo"]))
    assert client(lambda one: one.models.replace_aliases("echo", [])) == 'Model "echo" has no aliases'


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_key(server: RunningServer, way: str) -> None:
    both = Both(server, way, key="wrong", management_key="wrong", key_file=None)
    try:
        for call in (lambda one: one.predict("echo"), lambda one: one.stream("echo"), lambda one: one.models.list()):
            with pytest.raises(UnauthorizedError):
                both(call)
    finally:
        both.close()


def test_management(client: Both, server: RunningServer) -> None:
    name = f"copy-{WAYS.index(client.way)}"
    phases: list[str] = []
    client(lambda one: one.models.register("echo.mar", model=name, workers=1, progress=phases.append))
    assert phases[-1] == "READY"
    assert client(lambda one: one.predict(name, b"x")) == b"x"
    assert name in [model["modelName"] for model in client(lambda one: one.models.list())]
    assert "2" in client(lambda one: one.models.scale(name, 2, max_workers=2))
    assert len(client(lambda one: one.models.describe(name))[0]["workers"]) == 2
    client(lambda one: one.models.set_default(name, "1.0"))
    client(lambda one: one.models.divide_traffic(name, {"1.0": 1}))
    assert "1.0" in str(client(lambda one: one.models.traffic(name)))
    client(lambda one: one.models.end_traffic(name))
    assert client(lambda one: one.is_ready(name))
    client(lambda one: one.models.scale(name, 0, max_workers=0))
    assert not client(lambda one: one.is_ready(name))
    with pytest.raises(UnavailableError):
        client(lambda one: one.predict(name))
    client(lambda one: one.models.unregister(name))
    with pytest.raises(NotFoundError):
        client(lambda one: one.models.describe(name))


def test_ready(client: Both) -> None:
    client(lambda one: one.wait_ready())
    client(lambda one: one.wait_ready("echo"))
    assert client(lambda one: one.is_ready())
    with pytest.raises(NotFoundError):
        client(lambda one: one.is_ready("nobody"))


@pytest.mark.parametrize("way", WAYS)
def test_nobody_answers(server: RunningServer, way: str) -> None:
    make = AsyncClient if way.startswith("async") else Client
    scheme = "grpc" if way.endswith("grpc") else "http"
    client = make(f"{scheme}://127.0.0.1:{free_port()}", key="x", retries=1)

    async def test() -> None:
        with pytest.raises(UnreachableError, match="Nothing answers at"):
            await _awaited(lambda one: one.predict("echo"), client)
        await _awaited(lambda one: one.close(), client)

    asyncio.run(test())
