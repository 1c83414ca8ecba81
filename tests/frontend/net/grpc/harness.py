"""A real server on a free port, over a registry whose jobs the test answers itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from msx_core.held_bytes import HeldBytes
from msx_core.service_errors import ModelNotFound, ServiceError
from msx_frontend.apis.torchserve.grpc.inference import SERVICE, InferenceService
from msx_frontend.apis.torchserve.grpc.management import ManagementService
from msx_frontend.assembly.grpc_server import GrpcServer
from msx_frontend.config import ServerConfig
from msx_frontend.config.server_config import GrpcTransport
from msx_frontend.job import Job
from msx_frontend.models.model_api import StatusMessage
from msx_frontend.models.parameters import Values
from msx_net.grpc.admission import ChecksTokens
from msx_net.grpc.messages import message_class
from msx_net.heartbeats import OFF, StreamHeartbeats
from msx_net.page_guard import PageGuard
from msx_net.tls.listeners import ServerTls
from tests.net.grpc.access_log import AccessLog

PACKAGE = "org.pytorch.serve.grpc.inference"
Request = message_class(f"{PACKAGE}.PredictionsRequest")
Response = message_class(f"{PACKAGE}.PredictionResponse")
HealthResponse = message_class(f"{PACKAGE}.TorchServeHealthResponse")
Empty = message_class("google.protobuf.Empty")


class TRANSPORT:
    """Which of the two serves; set by the fixture `transport`."""

    chosen: GrpcTransport = "own"


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

    def jobs_ended(self, jobs: list[Job]) -> None:
        for job in jobs:
            self._ended[job].set()

    @property
    def idle(self) -> bool:
        """No job has come that the test has not taken."""
        return self._jobs.empty()

    async def next_job(self) -> Job:
        return await asyncio.wait_for(self._jobs.get(), 120)

    async def ended(self, job: Job) -> None:
        await asyncio.wait_for(self._ended[job].wait(), 120)


class Health:
    def __init__(self) -> None:
        self.healthy = self.is_ready = True

    def ping(self) -> tuple[int, str]:
        return (200, "Healthy") if self.healthy else (500, "Unhealthy")

    def ready(self) -> bool:
        return self.is_ready


class ModelOperations:
    """Writes down what it is asked, and answers as ModelApi would; or raises `refusal`."""

    def __init__(self) -> None:
        self.refusal: ServiceError | None = None
        self.calls: list[tuple[Any, ...]] = []
        self.gate: asyncio.Event | None = None
        """Where a registration waits."""

    def _asked(self, *call: Any) -> None:
        self.calls.append(call)
        if self.refusal is not None:
            raise self.refusal

    def models(self, values: Values) -> dict[str, Any]:
        self._asked("models", values)
        return {"models": []}

    async def describe(self, name: str, number: str | None, values: Values, request_id: str) -> list[dict[str, Any]]:
        self._asked("describe", name, number, values, request_id)
        return [{"modelName": name}]

    async def register(self, values: Values) -> StatusMessage:
        self._asked("register", values)
        if self.gate is not None:
            await self.gate.wait()
        self._asked("registered")
        return StatusMessage("Registered.")

    async def scale(self, name: str, number: str | None, values: Values) -> StatusMessage:
        self._asked("scale", name, number, values)
        return StatusMessage("Scaled.", 202)

    async def unregister(self, name: str, number: str | None) -> StatusMessage:
        self._asked("unregister", name, number)
        return StatusMessage("Unregistered.")

    async def set_default(self, name: str, number: str) -> StatusMessage:
        self._asked("set_default", name, number)
        return StatusMessage("Set.")


class Served:
    """The server, and a client of it."""

    def __init__(self, server: GrpcServer, channel: grpc.aio.Channel) -> None:
        self.server, self.channel = server, channel
        self.registry, self.health, self.access_log, self.models = Registry(), Health(), AccessLog(), ModelOperations()

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

    def stream2(self, *requests: Any, **options: Any) -> Any:
        """Without requests, what to write them to."""
        path = f"/{SERVICE}/StreamPredictions2"
        method = self.channel.stream_stream(path, Request.SerializeToString, Response.FromString)
        return method(iter(requests) if requests else None, **options)


@asynccontextmanager
async def serving(
    tokens: ChecksTokens | None = None,
    tls: ServerTls | None = None,
    held: HeldBytes | None = None,
    guard: PageGuard | None = None,
    heartbeats: StreamHeartbeats = OFF,
    **settings: Any,
) -> AsyncIterator[Served]:
    settings |= {"grpc_inference_port": 0, "grpc_management_port": 0}
    config = ServerConfig(grpc_transport=TRANSPORT.chosen, **settings)
    registry, health, access_log = Registry(), Health(), AccessLog()
    models = ModelOperations()
    inference = InferenceService(
        registry,
        health,
        keys=config.sequence_keys,
        max_response_size=config.max_response_size,
        access_log=access_log,
        held=held,
    )
    services = [inference.service(), ManagementService(models, access_log).service()]
    server = GrpcServer(config, services, registry, health, tokens, tls, held, guard=guard, heartbeats=heartbeats)
    await server.start()
    options = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(server.inference.address, options=options) as channel:
        served = Served(server, channel)
        served.registry, served.health, served.access_log, served.models = registry, health, access_log, models
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


def told(error: grpc.aio.AioRpcError) -> dict[str, str]:
    """The metadata behind the status."""
    pairs: Any = error.trailing_metadata()
    return {key: str(value) for key, value in pairs}
