"""Large messages, streams, cancellation and the end of the server, over gRPC."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from msx_frontend.apis.probes import grpc_health as health
from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_net.grpc.messages import message_class
from tests.e2e.server import GRPC_TRANSPORTS, WATCHDOG, RunningServer, new_store, pack_service, run_server, wait_until
from tests.http2_transport import Http2Transport
from tests.phrases import worker_died

pytestmark = pytest.mark.e2e

Request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
Response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")
HealthRequest = message_class("grpc.health.v1.HealthCheckRequest")
HealthResponse = message_class("grpc.health.v1.HealthCheckResponse")


@pytest.fixture(scope="module", params=GRPC_TRANSPORTS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("grpc")
    store = new_store(folder)
    models = ["echo", "slow", "async_echo"]
    for name in models:
        pack_service(name, store)
    for function in ("generator", "coroutine"):
        pack_service("gated_stream", store, model=f"gated_{function}", function=function)
        pack_service("stream_fails", store, model=f"fails_{function}", function=function)
        models += [f"gated_{function}", f"fails_{function}"]
    loaded = [f"{name}.mar" for name in models]
    with run_server(folder, "--models", *loaded, properties=GRPC_TRANSPORTS[request.param]) as running:
        yield running


@pytest.fixture
def channel(server: RunningServer) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        yield channel


def predictions(channel: grpc.Channel) -> Any:
    return channel.unary_unary(f"/{SERVICE}/Predictions", Request.SerializeToString, Response.FromString)


def predict(channel: grpc.Channel, model: str, data: bytes = b"", **options: Any) -> bytes:
    request = Request(model_name=model, input={"body": data})
    answer: bytes = predictions(channel)(request, timeout=WATCHDOG, **options).prediction
    return answer


def stream(channel: grpc.Channel, model: str, data: bytes = b"") -> Any:
    path = f"/{SERVICE}/StreamPredictions"
    call = channel.unary_stream(path, Request.SerializeToString, Response.FromString)
    return call(Request(model_name=model, input={"body": data}), timeout=WATCHDOG)


def refused(channel: grpc.Channel, model: str, data: bytes = b"", version: str = "") -> tuple[str, str]:
    return failure(lambda: predictions(channel)(Request(model_name=model, model_version=version, input={"body": data})))


def failure(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error: Any = caught.value
    return error.code().name, error.details()


def runs_out_of_time(call: Callable[..., Any], begun: Callable[[], bool]) -> None:
    """In its handler: once more, and later, where the machine took all of the time to bring it there."""
    for seconds in (1, 30):
        code, _ = failure(partial(call, timeout=seconds))
        assert code == "DEADLINE_EXCEEDED"
        if begun():
            break


def test_large_ones(channel: grpc.Channel) -> None:
    data = bytes(range(256)) * 4096
    assert predict(channel, "echo", data=data) == data
    assert [response.prediction for response in stream(channel, "echo", data)] == [data]


def test_the_access_log_names_the_call(server: RunningServer, channel: grpc.Channel) -> None:
    predict(channel, "echo", metadata=[("x-request-id", "from-grpc")])
    lines = lambda: [line for line in server.log_lines() if line.get("request_id") == "from-grpc"]  # noqa: E731
    (line,) = wait_until(lines, "the access log has the call", server.tail)
    assert (line["method"], line["path"], line["status"]) == ("gRPC", f"{SERVICE}/Predictions", 0)


def order(folder: Path, **values: Any) -> bytes:
    return json.dumps({"dir": str(folder), **values}).encode()


@pytest.mark.parametrize("kind", ["generator", "coroutine"])
def test_chunks_come_one_by_one(channel: grpc.Channel, tmp_path: Path, kind: str) -> None:
    replies = stream(channel, f"gated_{kind}", order(tmp_path, count=2))
    assert next(replies).prediction == b"1\n"
    assert (tmp_path / "mark").read_text() == "1\n"
    (tmp_path / "2").touch()
    assert [reply.prediction for reply in replies] == [b"2\n"]


@pytest.mark.parametrize("kind", ["generator", "coroutine"])
def test_an_error_in_a_stream(channel: grpc.Channel, tmp_path: Path, kind: str) -> None:
    """Chunks before the error arrive, then the status."""
    replies = stream(channel, f"fails_{kind}", order(tmp_path, after=2, status=429))
    assert [next(replies).prediction, next(replies).prediction] == [b"0\n", b"1\n"]
    assert failure(lambda: next(replies)) == (
        "RESOURCE_EXHAUSTED",
        "no more chunks\norg.pytorch.serve.http.InternalServerException",
    )


def test_a_worker_that_dies_in_a_stream(server: RunningServer, channel: grpc.Channel, tmp_path: Path) -> None:
    [pid] = server.worker_pids("gated_generator")
    replies = stream(channel, "gated_generator", order(tmp_path, count=2))
    assert next(replies).prediction == b"1\n"
    os.kill(pid, signal.SIGKILL)
    code, details = failure(lambda: next(replies))
    assert code == "INTERNAL"
    assert details.startswith(worker_died(f"Rank 0 (pid {pid}) was ended by signal 9 (SIGKILL)."))


@pytest.mark.parametrize("model", ["slow", "async_echo"])
def test_a_client_that_leaves(server: RunningServer, channel: grpc.Channel, tmp_path: Path, model: str) -> None:
    pids, mark = server.worker_pids(model), tmp_path / "mark"
    request = Request(model_name=model, input={"body": order(tmp_path, seconds=600, mark=str(mark))})
    call = predictions(channel).future(request)
    wait_until(mark.exists, "it runs", server.tail)
    call.cancel()
    wait_until(lambda: mark.read_text().split() == ["started", "cancelled"], "it is cancelled", server.tail)
    assert json.loads(predict(channel, model, data=order(tmp_path, seconds=0)))
    assert server.worker_pids(model) == pids


@pytest.mark.parametrize("model", ["slow", "async_echo"])
def test_a_deadline(server: RunningServer, channel: grpc.Channel, tmp_path: Path, model: str) -> None:
    mark = tmp_path / "mark"
    request = Request(model_name=model, input={"body": order(tmp_path, seconds=600, mark=str(mark))})
    runs_out_of_time(partial(predictions(channel), request), mark.exists)
    wait_until(lambda: mark.read_text().split() == ["started", "cancelled"], "it is cancelled", server.tail)


def test_a_rest_port_answers_grpc_and_http2(server: RunningServer, tmp_path: Path) -> None:
    """Calls, and requests of the families over HTTP/2, which a client ends without ending its connection."""
    mark, address = tmp_path / "mark", server.info["inference"]
    slow = order(tmp_path, seconds=600, mark=str(mark)).decode()

    async def ask() -> tuple[int, str]:
        async with httpx.AsyncClient(transport=Http2Transport(), base_url=address) as client:
            leaving = asyncio.ensure_future(client.post("/predictions/slow", content=slow))
            while not mark.exists():
                await asyncio.sleep(0.01)
            leaving.cancel()
            reply = await client.post("/predictions/echo", content=b"hello")
            return reply.status_code, reply.text

    with grpc.insecure_channel(address.removeprefix("http://")) as channel:
        large = bytes(range(256)) * 4096
        assert predict(channel, "echo", data=large) == large
        assert [response.prediction for response in stream(channel, "echo", large)] == [large]
        assert asyncio.run(ask()) == (200, "hello")
        wait_until(lambda: mark.read_text().split() == ["started", "cancelled"], "it is cancelled", server.tail)
    logged = lambda: [line["status"] for line in server.log_lines() if line.get("path") == "/predictions/echo"]  # noqa: E731
    assert wait_until(logged, "the access log has the request", server.tail) == [200]


@pytest.mark.parametrize("way", GRPC_TRANSPORTS)
def test_sigterm_lets_a_running_call_finish(tmp_path: Path, way: str) -> None:
    """New ones are refused meanwhile; watchers of the health hear of it."""
    pack_service("gated_stream", new_store(tmp_path), model="gated", function="generator")
    with (
        run_server(tmp_path, "--models", "gated.mar", properties=GRPC_TRANSPORTS[way]) as server,
        grpc.insecure_channel(server.info["grpc_inference"]) as channel,
    ):
        watch: Any = channel.unary_stream(
            f"/{health.SERVICE}/Watch", HealthRequest.SerializeToString, HealthResponse.FromString
        )(HealthRequest(), timeout=WATCHDOG)
        assert next(watch).status == HealthResponse.SERVING
        replies = stream(channel, "gated", order(tmp_path, count=2))
        assert next(replies).prediction == b"1\n"
        server.process.send_signal(signal.SIGTERM)
        assert next(watch).status == HealthResponse.NOT_SERVING
        code, details = refused(channel, "gated")
        assert (code, details.partition("\n")[0]) == (
            "INTERNAL",
            "The server is shutting down and takes no more requests.",
        )
        (tmp_path / "2").touch()
        assert [reply.prediction for reply in replies] == [b"2\n"]
        assert server.process.wait(WATCHDOG) == 0
