"""ModelInfer and ModelStreamInfer over a registry whose jobs the test answers itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast

import grpc
import msgspec
import pytest

from msx_core.held_bytes import HeldBytes
from msx_core.kserve.message import join, split
from msx_core.kserve.types import HEADER_LENGTH
from msx_core.service_errors import BadRequest, HandlerFailed, Overloaded
from msx_frontend.apis.kserve.grpc.infer_messages import InferMessages
from msx_frontend.apis.kserve.grpc.infer_stream import AT_ONCE
from msx_frontend.apis.kserve.grpc.open_inference import OpenInferenceService
from msx_frontend.apis.kserve.repository import Repository
from msx_frontend.job import INFER, Job
from msx_net.grpc.admission import Admission
from msx_net.grpc.direct.listener import DirectListener
from msx_net.grpc.listen import GrpcListen, GrpcServed
from msx_net.grpc.messages import message_class
from msx_net.keys import ClientKey, Kind
from tests.frontend.keys.some import SELDOM, some_key
from tests.frontend.net.grpc.harness import Health, answer, begin, failure, told
from tests.frontend.net.predictions import FakeRegistry, as_registry
from tests.retry import told_wait

Request = message_class("inference.ModelInferRequest")
Response = message_class("inference.ModelInferResponse")
StreamResponse = message_class("inference.ModelStreamInferResponse")
Ready = message_class("inference.ServerReadyResponse")
LIMIT = 1 << 20
HEAD = {"model_name": "m", "model_version": "1.0", "id": "7"}
EMPTY = join({**HEAD, "outputs": []})


def tensor(value: bytes) -> bytes:
    size = {"binary_data_size": len(value)}
    return join(
        {**HEAD, "outputs": [{"name": "y", "datatype": "INT8", "shape": [len(value)], "parameters": size}]}, [value]
    )


class Client:
    def __init__(self, registry: FakeRegistry, channel: grpc.aio.Channel) -> None:
        self.registry, self._channel = registry, channel

    def infer(self, request: Any, **options: Any) -> Any:
        path = "/inference.GRPCInferenceService/ModelInfer"
        ask: Any = self._channel.unary_unary(path, Request.SerializeToString, Response.FromString)
        return ask(request, timeout=30, **options)

    def stream(self) -> Any:
        path = "/inference.GRPCInferenceService/ModelStreamInfer"
        method: Any = self._channel.stream_stream(path, Request.SerializeToString, StreamResponse.FromString)
        return method()

    async def job(self) -> Job:
        return await asyncio.wait_for(self.registry.next_job(), 120)


class Anybody(NamedTuple):
    key: ClientKey

    def check(self, kind: Kind, authorization: str | None) -> ClientKey:
        return self.key


@asynccontextmanager
async def serving(most_held: int = 1 << 30, key: ClientKey | None = None) -> AsyncIterator[Client]:
    """Each caller has this key, if there is one."""
    registry, held = FakeRegistry(), HeldBytes(most_held)
    unused, admission = cast(Repository, None), Admission(None if key is None else Anybody(key))
    service = OpenInferenceService(as_registry(registry), Health(), unused, held=held)
    listen = GrpcListen("g", "127.0.0.1", 0, LIMIT, LIMIT)
    listener = DirectListener(listen, GrpcServed([service.service()], admission))
    await listener.start()
    async with grpc.aio.insecure_channel(listener.address) as channel:
        yield Client(registry, channel)
    await listener.stop(0)


def request(id: str = "7", **members: Any) -> Any:
    made = Request(model_name="m", id=id, raw_input_contents=[b"\1\2"], **members)
    made.inputs.add(name="x", datatype="INT8", shape=[2])
    return made


def test_a_worker_is_told_the_class_of_a_call() -> None:
    async def main() -> None:
        async with serving() as client:
            call = client.infer(request(), metadata=(("x-msx-priority", "low"),))
            reading = asyncio.ensure_future(_awaited(call))
            job = await client.job()
            assert ("x-msx-priority", "low") in job.headers
            answer(job, EMPTY)
            await reading

    asyncio.run(main())


async def _awaited(call: Any) -> Any:
    return await call


def test_what_a_worker_gets() -> None:
    made = request()
    made.inputs[0].parameters["a"].int64_param = 5
    made.parameters["b"].string_param = "c"
    made.outputs.add(name="y").parameters["d"].bool_param = True
    body, size = InferMessages("inference").body(made)
    assert msgspec.json.decode(body[:size]) == {
        "id": "7",
        "inputs": [{"name": "x", "datatype": "INT8", "shape": [2], "parameters": {"a": 5, "binary_data_size": 2}}],
        "outputs": [{"name": "y", "parameters": {"d": True, "binary_data": True}}],
        "parameters": {"b": "c", "binary_data_output": True},
    }
    assert body[size:] == b"\1\2"


def test_typed_contents_travel_as_they_are() -> None:
    made = Request(model_name="m")
    made.inputs.add(name="x", datatype="INT8", shape=[2]).contents.int_contents.extend([1, 2])
    body, size = InferMessages("inference").body(made)
    (found,) = msgspec.json.decode(body[:size])["inputs"]
    assert found["grpc_contents"] is True
    assert message_class("inference.InferTensorContents").FromString(body[size:]).int_contents == [1, 2]


def test_raw_and_typed_together_are_refused() -> None:
    both, many = request(), request()
    both.inputs[0].contents.int_contents.append(1)
    many.raw_input_contents.append(b"")
    with pytest.raises(BadRequest, match="input 'x' has contents although raw_input_contents is there"):
        InferMessages("inference").body(both)
    with pytest.raises(BadRequest, match="raw_input_contents has 2 tensors, but inputs has 1"):
        InferMessages("inference").body(many)


def test_parameters_of_a_reply() -> None:
    head = {**HEAD, "parameters": {"a": 1, "b": 2**63, "c": 2**70, "d": 0.5, "e": None, "f": True}, "outputs": []}
    found = InferMessages("inference").response(*split(join(head))).parameters
    chosen = {name: value.WhichOneof("parameter_choice") for name, value in found.items()}
    assert chosen == {
        "a": "int64_param",
        "b": "uint64_param",
        "c": "string_param",
        "d": "double_param",
        "e": "string_param",
        "f": "bool_param",
    }


def test_one_inference() -> None:
    async def test() -> None:
        async with serving() as client:
            call = asyncio.ensure_future(client.infer(request(model_version="1.0")))
            job = await client.job()
            assert (job.kind, job.model_name, job.version) == (INFER, "m", "1.0")
            assert job.deadline is not None
            assert [(name, value.isdecimal()) for name, value in job.headers] == [(HEADER_LENGTH, True)]
            answer(job, tensor(b"\3"))
            response = await call
            assert (response.id, response.model_version) == ("7", "1.0")
            assert (list(response.outputs[0].shape), list(response.raw_output_contents)) == ([1], [b"\3"])

    asyncio.run(test())


def test_codes() -> None:
    async def test() -> None:
        async with serving() as client:
            client.registry.refusal = Overloaded("no worker (full)", plain="full")
            error = await failure(client.infer(request()))
            assert (error.code(), error.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "full")
            assert told_wait(told(error))
            client.registry.refusal = None
            error = await failure(client.infer(Request()))
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
            for status, messages, code in (
                (409, [b"not now"], grpc.StatusCode.ABORTED),
                (200, [EMPTY, EMPTY], grpc.StatusCode.UNIMPLEMENTED),
            ):
                call = asyncio.ensure_future(client.infer(request()))
                answer(await client.job(), *messages, status=status)
                assert (await failure(call)).code() is code

    asyncio.run(test())


def test_too_much_is_held() -> None:
    async def test() -> None:
        async with serving(most_held=30_000) as client:
            large = request()
            large.raw_input_contents[0] = bytes(20_000)
            first = asyncio.ensure_future(client.infer(large))
            job = await client.job()
            error = await failure(client.infer(large))
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "more than max_queued_bytes (30000)" in (error.details() or "")
            answer(job, tensor(b"\3"))
            await first
            last = asyncio.ensure_future(client.infer(large))
            answer(await client.job(), tensor(b"\3"))
            await last

    asyncio.run(test())


def test_a_stream_answers_as_replies_come() -> None:
    async def test() -> None:
        async with serving() as client:
            call = client.stream()
            wants = request("a")
            wants.parameters["triton_enable_empty_final_response"].bool_param = True
            await call.write(wants)
            first = await client.job()
            begin(first, tensor(b"\1"))
            assert await heard(call) == ("", [b"\1"], False)
            await call.write(request("b"))
            second = await client.job()
            assert second.id != first.id
            answer(second, tensor(b"\2"))
            assert await heard(call) == ("", [b"\2"], True)
            first.finish(200)
            assert await heard(call) == ("", [], True)
            await call.done_writing()
            assert not await call.read()

    asyncio.run(test())


async def heard(call: Any) -> tuple[str, list[bytes], bool]:
    response = await asyncio.wait_for(call.read(), 120)
    inferred = response.infer_response
    final = inferred.parameters["triton_final_response"].bool_param
    return response.error_message, list(inferred.raw_output_contents), final


def test_a_stream_outlives_an_error() -> None:
    async def test() -> None:
        async with serving() as client:
            call = client.stream()
            await call.write(Request(id="a"))
            assert await heard(call) == ("model_name is required.", [], True)
            await call.write(request("b"))
            (await client.job()).fail(HandlerFailed(400, "no"))
            assert await heard(call) == ("no", [], True)
            await call.write(request("c"))
            answer(await client.job(), b"not now", status=409)
            assert await heard(call) == ("not now", [], True)
            await call.write(request("d"))
            answer(await client.job(), tensor(b"\1"))
            assert await heard(call) == ("", [b"\1"], True)

    asyncio.run(test())


def test_a_client_that_leaves_a_stream_ends_its_jobs() -> None:
    async def test() -> None:
        async with serving() as client:
            call = client.stream()
            for name in "ab":
                await call.write(request(name))
            jobs = [await client.job() for _ in range(2)]
            ended = asyncio.Event()
            jobs[1].listener = cast(Any, Ended(ended))
            call.cancel()
            await asyncio.wait_for(ended.wait(), 120)
            assert jobs[1].cancelled

    asyncio.run(test())


class Ended:
    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def jobs_ended(self, jobs: list[Job]) -> None:
        self._event.set()


def test_a_stream_takes_only_so_many_at_once() -> None:
    async def test() -> None:
        async with serving() as client:
            call = client.stream()
            for number in range(AT_ONCE + 1):
                await call.write(request(str(number)))
            jobs = [await client.job() for _ in range(AT_ONCE)]
            await call.write(request("more"))
            assert client.registry.idle
            answer(jobs[0], tensor(b"\1"))
            assert (await heard(call))[2]
            await client.job()
            call.cancel()

    asyncio.run(test())


def test_a_key_for_other_models() -> None:
    async def test() -> None:
        async with serving(key=some_key("team-a", models=("k",))) as client:
            said = 'The key "team-a" is not for model m, but for: k (api_keys_file).'
            error = await failure(client.infer(request()))
            assert (error.code(), error.details()) == (grpc.StatusCode.PERMISSION_DENIED, said)
            call = client.stream()
            await call.write(request())
            assert await heard(call) == (said, [], True)
            await call.write(Request(id="a"))
            assert await heard(call) == ("model_name is required.", [], True)
            assert client.registry.idle

    asyncio.run(test())


def test_each_request_of_a_stream_counts_for_the_rate_of_its_key() -> None:
    async def test() -> None:
        async with serving(key=some_key("team-a", rate=SELDOM)) as client:
            call = client.stream()
            await call.write(request())
            answer(await client.job(), tensor(b"\1"))
            assert await heard(call) == ("", [b"\1"], True)
            await call.write(request())
            said = 'The key "team-a" is above its rate of 0.001 per second (api_keys_file).'
            assert await heard(call) == (said, [], True)

    asyncio.run(test())
