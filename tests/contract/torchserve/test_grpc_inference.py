"""The inference service over gRPC, and health and reflection beside it.

contract#grpc
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from msx_net.grpc.messages import POOL
from tests.contract.torchserve.grpc_client import (
    HEALTH,
    HTTP,
    INFERENCE,
    MANAGEMENT,
    MODEL,
    Stub,
    failure,
    message,
    pool,
    stub_of,
)
from tests.contract.torchserve.setup import Setup
from tests.e2e.server import RunningServer, pack_service, wait_until
from tests.phrases import no_worker

pytestmark = pytest.mark.e2e
BOTH_WAYS = True

LIMIT = 100_000
MODELS = ("echo", "report", "headers", "stream_send", "slow", "sees_cancel", "big", "prediction_error")
SEQUENCES = """
sequenceBatching: true
minWorkers: 2
maxWorkers: 2
sequenceMaxIdleMSec: 600000
maxNumSequence: 20
maxSequenceJobQueueSize: 5
"""

PAIRS = "batchSize: 2\nbatchingPolicy: fixed\nmaxBatchDelay: 600000\n"
"""A request waits for another one, for longer than a case lasts."""


def prepare(store: Path) -> None:
    pack_service("ts/modes_sequence", store, model="sums", config=SEQUENCES)
    pack_service("report", store, model="pairs", config=PAIRS)
    pack_service("report", store, model="shared", config=PAIRS + "streamBatching: true\n")


SERVER = Setup(
    services=MODELS,
    prepare=prepare,
    load=tuple(f"{name}.mar" for name in (*MODELS, "sums", "pairs", "shared")),
    properties=f"max_request_size={LIMIT}\nmax_response_size={LIMIT}\ndefault_workers_per_model=1\n",
)


@pytest.fixture
def inference(server: RunningServer) -> Iterator[Stub]:
    with stub_of(server, INFERENCE) as stub:
        yield stub


def report(inference: Stub, **options: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        inference.Predictions(model_name="report", input={"data": b"\x01"}, options=options).prediction
    )
    return answer


# -- the wire --


@pytest.mark.parametrize("service", [INFERENCE, MANAGEMENT])
def test_names_numbers_and_types_are_torchserves(service: str) -> None:
    """The server's own files may know more, never something else."""
    theirs, ours = pool().FindServiceByName(service), POOL.FindServiceByName(service)
    for method in theirs.methods:
        own = ours.FindMethodByName(method.name)
        assert (own.client_streaming, own.server_streaming) == (method.client_streaming, method.server_streaming)
        for kind in ("input_type", "output_type"):
            descriptor, own_one = getattr(method, kind), getattr(own, kind)
            assert own_one.full_name == descriptor.full_name
            for field in descriptor.fields:
                same = own_one.fields_by_number[field.number]
                assert (same.name, same.type, same.is_repeated) == (field.name, field.type, field.is_repeated)


# -- Ping, Predictions --


def test_ping(inference: Stub) -> None:
    """JSON text, as REST has it but for the line feed at its end."""
    assert inference.Ping().health == '{\n  "status": "Healthy"\n}'


def test_a_prediction(inference: Stub) -> None:
    response = inference.Predictions(model_name="echo", input={"body": b"\x00\xff"})
    assert response.prediction == b"\x00\xff"
    assert {field.name for field, _ in response.ListFields()} == {"prediction"}


@pytest.mark.parametrize("version", ["", "1.0"])
def test_versions(inference: Stub, version: str) -> None:
    assert inference.Predictions(model_name="echo", model_version=version, input={"body": b"x"}).prediction == b"x"


def test_inputs_are_bytearrays_without_content_type(inference: Stub) -> None:
    """Also what would be decoded over REST."""
    response = inference.Predictions(model_name="report", input={"a": b'{"j": 1}', "b": b"text"})
    assert json.loads(response.prediction)["fields"] == {"a": ["bytearray", '{"j": 1}'], "b": ["bytearray", "text"]}


def test_metadata_is_not_forwarded(inference: Stub) -> None:
    assert "ts-own" not in report(inference, metadata=[("ts-own", "x")])["headers"]


def test_a_status_that_the_handler_sets_is_ignored(inference: Stub) -> None:
    body = json.dumps({"status": 418}).encode()
    response = inference.Predictions(model_name="headers", input={"body": body})
    assert response.prediction


def test_a_handler_finds_no_headers(inference: Stub) -> None:
    assert report(inference)["headers"] == {}


def test_a_streaming_handler_answers_a_unary_call_as_a_whole(inference: Stub) -> None:
    """TorchServe sends the first piece and loses the rest."""
    assert inference.Predictions(model_name="stream_send", input={"body": b""}).prediction == b"one two three"


# -- StreamPredictions --


def test_a_stream_has_a_response_a_piece(inference: Stub) -> None:
    replies = inference.StreamPredictions(model_name="stream_send", input={"body": b""})
    assert [reply.prediction for reply in replies] == [b"one ", b"two ", b"three"]


def batches(inference: Stub, model: str) -> list[int]:
    """Two calls at a time; the batch that each of them was in."""
    calls = [inference.StreamPredictions(model_name=model, input={"body": b"x"}) for _ in range(2)]
    return [json.loads(reply.prediction)["batch"] for call in calls for reply in call]


def test_a_stream_shares_no_batch(inference: Stub) -> None:
    assert batches(inference, "pairs") == [1, 1]


def test_streams_share_batches_where_the_yaml_says_so(inference: Stub) -> None:
    assert batches(inference, "shared") == [2, 2]


def test_a_stream_of_a_handler_that_does_not_stream(inference: Stub) -> None:
    replies = inference.StreamPredictions(model_name="echo", input={"body": b"x"})
    assert [reply.prediction for reply in replies] == [b"x"]


def noted(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


def test_a_client_that_leaves_frees_the_worker_within_one_chunk(
    server: RunningServer, inference: Stub, tmp_path: Path
) -> None:
    [pid], path = server.worker_pids("sees_cancel"), tmp_path / "notes"
    for turn in (1, 2):
        call = inference.StreamPredictions(model_name="sees_cancel", input={"body": bytes(path)})
        assert next(call).prediction == b"1"
        call.cancel()
        wait_until(partial(noted, path, "sees it\nclosed\n" * turn), "the worker is free", server.tail)
    assert server.worker_pids("sees_cancel") == [pid]


def test_a_connection_that_breaks_frees_the_worker(server: RunningServer, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    with stub_of(server, INFERENCE) as leaver:
        assert next(leaver.StreamPredictions(model_name="sees_cancel", input={"body": bytes(path)})).prediction == b"1"
    wait_until(partial(noted, path, "sees it\nclosed\n"), "the worker is free", server.tail)


def test_a_deadline_frees_the_worker(server: RunningServer, inference: Stub, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    call = inference.StreamPredictions(model_name="sees_cancel", input={"body": bytes(path)}, options={"timeout": 1})
    assert failure(lambda: call)[0] == "DEADLINE_EXCEEDED"
    wait_until(partial(noted, path, "sees it\nclosed\n"), "the worker is free", server.tail)


def test_a_deadline_in_the_queue(server: RunningServer, inference: Stub, tmp_path: Path) -> None:
    """A request that is late before its turn never runs."""
    marks = [tmp_path / name for name in ("first", "second")]
    body = [json.dumps({"seconds": 600, "mark": str(mark)}).encode() for mark in marks]
    with stub_of(server, INFERENCE) as other:
        running = other.StreamPredictions(model_name="slow", input={"body": body[0]})
        wait_until(marks[0].exists, "the first one runs", server.tail)
        late = lambda: inference.Predictions(model_name="slow", input={"body": body[1]}, options={"timeout": 1})  # noqa: E731
        assert failure(late)[0] == "DEADLINE_EXCEEDED"
        running.cancel()
    wait_until(lambda: marks[0].read_text().split() == ["started", "cancelled"], "the first has ended", server.tail)
    done = json.dumps({"seconds": 0}).encode()
    assert inference.Predictions(model_name="slow", input={"body": done}).prediction
    assert not marks[1].exists()


# -- StreamPredictions2 --


def asked(model: str, data: bytes, sequence: str | None = None, **inputs: bytes) -> Message:
    found: Message = message("org.pytorch.serve.grpc.inference.PredictionsRequest")(
        model_name=model, input={"body": data, **inputs}, sequence_id=sequence
    )
    return found


class Conversation:
    """One call, whose requests are written one by one."""

    def __init__(self, inference: Stub) -> None:
        self._requests: SimpleQueue[Message | None] = SimpleQueue()
        self._replies = inference.StreamPredictions2(iter(self._requests.get, None))

    def ask(self, add: int, sequence: str | None = None, **marks: bytes) -> Any:
        self._requests.put(asked("sums", json.dumps({"add": add}).encode(), sequence, **marks))
        return next(self._replies)

    def end(self) -> list[Any]:
        self._requests.put(None)
        return list(self._replies)


def test_a_conversation_with_a_stateful_model(inference: Stub) -> None:
    """Its requests go to one worker, in their order; another call has a sequence of its own."""
    first, second = Conversation(inference), Conversation(inference)
    told = [json.loads(talk.ask(add, id).prediction) for talk, add, id in [(first, 1, "a"), (second, 10, "b")] * 3]
    assert [one["sum"] for one in told] == [1, 10, 2, 20, 3, 30]
    assert len({one["pid"] for one in told[::2]}) == len({one["pid"] for one in told[1::2]}) == 1
    assert first.end() == second.end() == []


def test_a_sequence_that_the_server_names_goes_on_in_another_call(inference: Stub) -> None:
    talk = Conversation(inference)
    reply = talk.ask(1, ts_request_sequence_start=b"true")
    assert json.loads(reply.prediction)["started"] == "true"
    assert json.loads(talk.ask(2).prediction)["sum"] == 3
    talk.end()
    again = Conversation(inference)
    assert json.loads(again.ask(3, reply.sequence_id).prediction)["sum"] == 6
    assert json.loads(again.ask(4, ts_request_sequence_end=b"true").prediction)["sum"] == 10
    ended = again.ask(5, reply.sequence_id)
    assert (ended.status.code, ended.sequence_id) == (13, reply.sequence_id)
    assert ended.status.message.startswith(no_worker("sums"))
    again.end()


def test_the_requests_of_a_sequence(inference: Stub) -> None:
    replies = list(inference.StreamPredictions2(iter([asked("report", b"1", "s"), asked("report", b"2", "s")])))
    assert [reply.sequence_id for reply in replies] == ["s", "s"]
    for reply in replies:
        assert json.loads(reply.prediction)["headers"]["ts_request_sequence_id"] == "s"
        assert not reply.HasField("status")


def test_the_marks_of_a_sequence_are_among_the_inputs(inference: Stub) -> None:
    request = asked("report", b"1", ts_request_sequence_start=b"true", ts_request_sequence_end=b"true")
    (reply,) = inference.StreamPredictions2(iter([request]))
    headers = json.loads(reply.prediction)["headers"]
    assert headers["ts_request_sequence_start"] == headers["ts_request_sequence_end"] == "true"
    assert reply.sequence_id == headers["ts_request_sequence_id"]
    assert reply.sequence_id.startswith("ts-seq-")


def test_an_error_within_a_sequence(inference: Stub) -> None:
    """It is the status of its response, with TorchServe's class as the reason; the call goes on."""
    requests = [asked("prediction_error", b"404", "s"), asked("nobody", b"", "s"), asked("echo", b"x", "s")]
    failed, unknown, answered = inference.StreamPredictions2(iter(requests))
    assert (failed.status.code, failed.status.message) == (grpc.StatusCode.NOT_FOUND.value[0], "you asked for 404")
    (reason,) = failed.status.details
    assert reason.type_url == "type.googleapis.com/google.rpc.ErrorInfo"
    assert f"{HTTP}.InternalServerException".encode() in reason.value
    assert (unknown.status.code, unknown.status.message) == (13, "Model not found: nobody")
    assert f"{MODEL}.ModelNotFoundException".encode() in unknown.status.details[0].value
    assert answered.prediction == b"x"


# -- limits --


def test_a_request_above_the_limit(inference: Stub) -> None:
    code, details = failure(lambda: inference.Predictions(model_name="echo", input={"body": b"x" * LIMIT}))
    assert code == "RESOURCE_EXHAUSTED"
    assert str(LIMIT) in details


@pytest.mark.parametrize("method", ["Predictions", "StreamPredictions"])
def test_a_response_at_the_limit_and_above_it(inference: Stub, method: str) -> None:
    call = getattr(inference, method)
    answer = call(model_name="big", input={"body": b"%d" % LIMIT})
    responses = list(answer) if method == "StreamPredictions" else [answer]
    assert sum(len(response.prediction) for response in responses) == LIMIT
    _, details = failure(lambda: call(model_name="big", input={"body": b"%d" % (LIMIT + 1)}))
    assert f"max_response_size ({LIMIT} bytes)" in details


# -- what TorchServe lacks --


@pytest.mark.parametrize("kind", ["inference", "management"])
def test_health_and_reflection_on_both_ports(server: RunningServer, kind: str) -> None:
    from grpc_reflection.v1alpha import reflection_pb2 as v1alpha

    own = {"inference": INFERENCE, "management": MANAGEMENT}[kind]
    with grpc.insecure_channel(server.info[f"grpc_{kind}"]) as channel:
        health = Stub(channel, HEALTH)
        for service in ("", own, "echo"):
            assert health.Check(service=service).status == 1
        assert failure(lambda: health.Check(service="nobody"))[0] == "NOT_FOUND"
        ask = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            v1alpha.ServerReflectionRequest.SerializeToString,
            v1alpha.ServerReflectionResponse.FromString,
        )
        (listed,) = ask(iter([v1alpha.ServerReflectionRequest(list_services="")]))
    names = {service.name for service in listed.list_services_response.service}
    assert {own, HEALTH} <= names


def test_the_request_id(inference: Stub) -> None:
    assert report(inference, metadata=[("x-request-id", "mine")])["id"] == "mine"
