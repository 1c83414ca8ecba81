"""A real grpc.aio server on a free port, over a registry whose jobs the test answers itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from msx_frontend.config import ServerConfig
from msx_frontend.errors import ModelNotFound, ServiceError
from msx_frontend.grpc_api.handlers import Call
from msx_frontend.grpc_api.inference import SERVICE, ChecksTokens
from msx_frontend.grpc_api.messages import message_class
from msx_frontend.grpc_api.server import GrpcServer
from msx_frontend.job import Job

PACKAGE = "org.pytorch.serve.grpc.inference"
Request = message_class(f"{PACKAGE}.PredictionsRequest")
Response = message_class(f"{PACKAGE}.PredictionResponse")
HealthResponse = message_class(f"{PACKAGE}.TorchServeHealthResponse")
Empty = message_class("google.protobuf.Empty")


@dataclass
class Model:
    serving: bool


class Registry:
    """Takes every job, unless `refusal` is set."""

    def __init__(self) -> None:
        self.refusal: ServiceError | None = None
        self.models: dict[str, Model] = {}
        self._jobs: asyncio.Queue[Job] = asyncio.Queue()
        self._ended: dict[Job, asyncio.Event] = {}

    def submit(self, job: Job) -> None:
        if self.refusal is not None:
            raise self.refusal
        self._ended[job] = asyncio.Event()
        job.listener = self
        self._jobs.put_nowait(job)

    def find(self, name: str) -> Model:
        if name not in self.models:
            raise ModelNotFound(name)
        return self.models[name]

    def job_ended(self, job: Job) -> None:
        self._ended[job].set()

    async def next_job(self) -> Job:
        return await asyncio.wait_for(self._jobs.get(), 30)

    async def ended(self, job: Job) -> None:
        await asyncio.wait_for(self._ended[job].wait(), 30)


class Health:
    def __init__(self) -> None:
        self.healthy = self.is_ready = True

    def ping(self) -> tuple[int, str]:
        return (200, "Healthy") if self.healthy else (500, "Unhealthy")

    def ready(self) -> bool:
        return self.is_ready


class AccessLog:
    def __init__(self) -> None:
        self.lines: asyncio.Queue[tuple[Call, int]] = asyncio.Queue()

    def write(self, call: Call, status: int) -> None:
        self.lines.put_nowait((call, status))


class Served:
    """The server, and a client of it."""

    def __init__(self, server: GrpcServer, channel: grpc.aio.Channel) -> None:
        self.server, self.channel = server, channel
        self.registry, self.health, self.access_log = Registry(), Health(), AccessLog()

    def ping(self, metadata: Any = None) -> Any:
        method = self.channel.unary_unary(f"/{SERVICE}/Ping", Empty.SerializeToString, HealthResponse.FromString)
        return method(Empty(), metadata=metadata)

    def predict(self, request: Any, **options: Any) -> Any:
        method = self.channel.unary_unary(f"/{SERVICE}/Predictions", Request.SerializeToString, Response.FromString)
        return method(request, **options)

    def stream(self, request: Any, **options: Any) -> Any:
        path = f"/{SERVICE}/StreamPredictions"
        method = self.channel.unary_stream(path, Request.SerializeToString, Response.FromString)
        return method(request, **options)

    def stream2(self) -> Any:
        path = f"/{SERVICE}/StreamPredictions2"
        return self.channel.stream_stream(path, Request.SerializeToString, Response.FromString)(iter([request()]))


@asynccontextmanager
async def serving(tokens: ChecksTokens | None = None, **settings: Any) -> AsyncIterator[Served]:
    config = ServerConfig(grpc_inference_port=0, **settings)
    registry, health, access_log = Registry(), Health(), AccessLog()
    server = GrpcServer(config, registry, health, tokens, access_log)
    await server.start()
    options = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(server.address, options=options) as channel:
        served = Served(server, channel)
        served.registry, served.health, served.access_log = registry, health, access_log
        try:
            yield served
        finally:
            await server.stop(0)


def request(model: str = "m", version: str = "", **inputs: bytes) -> Any:
    return Request(model_name=model, model_version=version, input=inputs or {"data": b"1"})


def answer(job: Job, *chunks: bytes, status: int = 200) -> None:
    """As a worker group does it, to the end."""
    begin(job, *chunks, status=status)
    job.finish(status)


def begin(job: Job, *chunks: bytes, status: int = 200) -> None:
    job.sink.start(status, "", [])
    for chunk in chunks:
        job.sink.chunk(chunk)


async def failure(call: Any) -> grpc.aio.AioRpcError:
    """The error that the call ends with."""
    try:
        await call if not hasattr(call, "__aiter__") else [item async for item in call]
    except grpc.aio.AioRpcError as error:
        return error
    raise AssertionError("the call did not fail")
