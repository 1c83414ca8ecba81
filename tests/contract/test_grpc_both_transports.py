"""Each gRPC method is answered alike by both transports, our own HTTP/2 and grpc.aio, and by REST ports.

One table of calls runs by all. All that a client gets and all that the access log says is compared.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, cast

import pytest

from msx_core.held_bytes import HeldBytes
from msx_core.kserve.message import join
from msx_core.kserve.types import Signature
from msx_core.service_errors import DeadlineExceeded, HandlerFailed, InvalidKey, Overloaded
from msx_frontend.apis.served_api import installed_apis
from msx_frontend.assembly.grpc_server import GrpcServer
from msx_frontend.assembly.grpc_services import grpc_services
from msx_frontend.config import ServerConfig
from msx_frontend.job import INFER, Job
from msx_frontend.keys.key import Key
from msx_frontend.metrics.inference_statistics import InferenceStatistics
from msx_frontend.workflows.workflow import WorkflowRegistry
from msx_net.connections.limits import ConnectionLimits
from msx_net.grpc.admission import ChecksTokens
from msx_net.grpc.messages import POOL, message_class
from msx_net.grpc.reflection import NAMES
from msx_net.grpc.service import Service
from msx_net.http.v2.listener import RestHttp2
from msx_net.keys import Kind
from msx_net.listening.address import Address
from msx_net.listening.listener import Listener
from tests.frontend.keys.some import some_key
from tests.frontend.net.grpc.harness import Health, Model, ModelOperations, Registry
from tests.net.grpc.access_log import AccessLog
from tests.raw_grpc import RawAnswer, RawCall, framed

LIMIT = 2_000
"""Bytes of requests and of responses."""

INFERENCE = "org.pytorch.serve.grpc.inference.InferenceAPIsService"
MANAGEMENT = "org.pytorch.serve.grpc.management.ManagementAPIsService"
TRAFFIC = "msx.TrafficService"
HEALTH = "grpc.health.v1.Health"
PREDICTIONS = f"{INFERENCE}/Predictions"
WATCH = f"{HEALTH}/Watch"
INFER_METHODS = ("ModelInfer", "ModelStreamInfer")
KEY = ("authorization", "Bearer K")
GZIP = ("grpc-encoding", "gzip")


class Tokens:
    def check(self, kind: Kind, authorization: str | None) -> Key:
        if authorization != KEY[1]:
            raise InvalidKey("Token refused")
        return some_key("team-a", models=("m",))


VERSION = SimpleNamespace(
    serving=True,
    ready_workers=1,
    min_workers=1,
    signature=Signature(),
    answers=True,
    source=SimpleNamespace(name="m", version="1.0", manifest={}),
    config=SimpleNamespace(batch_size=1),
    metrics=SimpleNamespace(statistics=InferenceStatistics()),
)


class AnsweringRegistry(Registry):
    """Knows model `m`. What becomes of a job is said by the version that it asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.models = {"m": cast(Model, VERSION)}

    def find(self, name: str, version: str | None = None) -> Model:
        return super().find(name)

    def versions_of(self, name: str) -> list[Model]:
        return [self.find(name)]

    def all_versions(self) -> list[Model]:
        return [self.find("m")]

    def submit(self, job: Job) -> None:
        if job.version == "refused":
            refusal = Overloaded("No room.")
            refusal.headers = (("retry-after", "1"), ("retry-after-ms", "1000"))  # not at random
            raise refusal
        if job.version == "bug":
            raise RuntimeError("boom")
        super().submit(job)
        asyncio.get_running_loop().call_soon(self._answer, job)

    def _answer(self, job: Job) -> None:
        head = {"model_name": "m", "model_version": "1", "outputs": []}
        good = join(head) if job.kind == INFER else b"good"
        if job.version == "failed":
            job.fail(HandlerFailed(503, "Prediction failed: no."))
        elif job.version == "large":
            job.answer(200, "", [], join({**head, "id": "x" * 2 * LIMIT}) if job.kind == INFER else bytes(LIMIT + 1))
        elif job.version == "damaged":
            job.answer(200, "", [], b"not what a worker says")
        elif job.version != "silent":
            job.answer(200, "", [], good)
        elif job.deadline is not None:  # as the dispatcher does it; behind the transport, where that sees to it
            asyncio.get_running_loop().call_at(job.deadline + 0.2, job.cancel, DeadlineExceeded("Time is up."))


class KnownArchives:
    """The repository of Open Inference."""

    async def index(self, only_ready: bool) -> list[dict[str, str]]:
        return [{"name": name, "version": "1.0", "state": "READY", "reason": ""} for name in ("m", "other")]

    async def load(self, name: str, parameters: Any) -> None: ...

    async def unload(self, name: str) -> None: ...


class Broken:
    """A part of the server that has a bug wherever it is asked."""

    def __getattr__(self, name: str) -> Any:
        def ask(*args: object, **more: object) -> Any:
            raise RuntimeError("boom")

        return ask


CONFIG: dict[str, Any] = {"ts_open_inference_protocol": "oip"}


def services_of(
    config: ServerConfig, access_log: AccessLog, held: HeldBytes, *, broken: bool = False
) -> tuple[Any, list[Service]]:
    """The registry, and what a server has."""
    good = AnsweringRegistry(), Health(), ModelOperations(), KnownArchives()
    parts: tuple[Any, ...] = tuple(Broken() for _ in good) if broken else good
    registry, health, models, repository = parts
    own = (config, registry, health, models, repository, access_log, held, WorkflowRegistry())
    return registry, grpc_services(*own, installed_apis())


class Bench:
    """A server by one of the transports."""

    def __init__(self, inference: str, management: str, registry: Any, access_log: AccessLog, held: HeldBytes) -> None:
        self._inference, self._management = inference, management
        self.registry, self._access_log, self.held = registry, access_log, held

    async def begin(self, path: str, *fields: tuple[str, str]) -> RawCall:
        address = self._management if path.startswith((MANAGEMENT, TRAFFIC)) else self._inference
        return await RawCall.begin(address, f"/{path}", (("x-request-id", "mine"), KEY, *fields))

    async def ask(self, path: str, body: bytes, *fields: tuple[str, str]) -> tuple[RawAnswer, Any]:
        """The answer, and the line of the access log, where the service has one."""
        call = await self.begin(path, *fields)
        call.write(body)
        answer = await call.answer()
        return answer, None if path.startswith("grpc.") or answer.status != "200" else await self.line()

    async def line(self) -> tuple[Any, ...]:
        call, status = await asyncio.wait_for(self._access_log.lines.get(), 120)
        return call.target, call.id, call.key_name, call.method, call.protocol, status


Way = Literal["direct", "aio", "REST"]


@asynccontextmanager
async def serving(way: Way, *, broken: bool = False, tokens: ChecksTokens | None = None) -> AsyncIterator[Bench]:
    config = ServerConfig(
        grpc_inference_port=0,
        grpc_management_port=0,
        grpc_transport="grpcio" if way == "aio" else "own",
        max_request_size=LIMIT,
        max_response_size=LIMIT,
        **CONFIG,
    )
    access_log, held = AccessLog(), HeldBytes()
    registry, services = services_of(config, access_log, held, broken=broken)
    health = Broken() if broken else Health()
    server = GrpcServer(config, services, registry, health, tokens or Tokens(), held=held)
    async with _on_rest_ports(server) if way == "REST" else _on_its_ports(server) as (inference, management):
        yield Bench(inference, management, registry, access_log, held)


@asynccontextmanager
async def _on_its_ports(server: GrpcServer) -> AsyncIterator[tuple[str, str]]:
    await server.start()
    try:
        yield server.inference.address, server.management.address
    finally:
        await server.stop(0)


@asynccontextmanager
async def _on_rest_ports(server: GrpcServer) -> AsyncIterator[tuple[str, str]]:
    async with AsyncExitStack() as stack:
        addresses = []
        for name in ("inference", "management"):
            http2 = RestHttp2(no_app, None, ConnectionLimits(), LIMIT)
            listener = Listener(name, Address("http", "127.0.0.1", 0), no_app, http2=http2)
            http2.answer_calls(calls := server.calls_of((name,)))
            await listener.start()
            stack.push_async_callback(listener.stop, 1)
            stack.push_async_callback(calls.stop)
            stack.callback(calls.end_watches)
            addresses.append(str(listener.address).removeprefix("http://"))
        yield addresses[0], addresses[1]


async def no_app(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("a call is not a request of ASGI")


def by_both(test: Callable[[Bench], Awaitable[Any]], *, broken: bool = False) -> Any:
    """Result of the test by one transport, which has to be the same by the other, and on REST ports."""

    async def run(way: Way) -> Any:
        async with serving(way, broken=broken) as bench:
            return await asyncio.wait_for(test(bench), 60)

    ours = asyncio.run(run("direct"))
    assert ours == asyncio.run(run("aio"))
    assert ours == asyncio.run(run("REST"))
    return ours


def all_paths() -> Iterator[str]:
    """Paths of a server with all of its services."""
    _, services = services_of(ServerConfig(**CONFIG), AccessLog(), HeldBytes())
    for name in [*(one.name for one in services), HEALTH]:
        yield from (f"{name}/{method.name}" for method in POOL.FindServiceByName(name).methods)


PATHS = [*all_paths()]
JOB_PATHS = [path for path in PATHS if "Predictions" in path or path.endswith(INFER_METHODS)]


def request(path: str, version: str = "", model: str = "m") -> bytes:
    """One with the model and the version, where requests of the method have them."""
    service, _, name = path.partition("/")
    kind = POOL.FindServiceByName(service).FindMethodByName(name).input_type
    message = message_class(kind.full_name)()
    values = {"model_name": model, "name": model, "model_version": version, "version": version, "sequence_id": "s"}
    for field, value in values.items():
        if field in kind.fields_by_name:
            setattr(message, field, value)
    data: bytes = message.SerializeToString()
    return data


class Case(NamedTuple):
    """Body that is sent on a path, and the metadata beside a key and an id."""

    body: Callable[[str], bytes]
    fields: tuple[tuple[str, str], ...] = ()


CASES = {
    "good": Case(lambda path: framed(request(path))),
    "empty": Case(lambda path: framed(b"")),
    "not a message": Case(lambda path: framed(b"\xff\xff")),
    "no message": Case(lambda path: b""),
    "two messages": Case(lambda path: framed(request(path)) * 2),
    "no token": Case(lambda path: framed(request(path)), (("authorization", ""),)),
    "another token": Case(lambda path: framed(request(path)), (("authorization", "Bearer X"),)),
    "a wrong token before what is not a message": Case(lambda path: framed(b"\xff"), (("authorization", "X"),)),
    "another model than the key's": Case(lambda path: framed(request(path, model="n"))),
    "compressed": Case(lambda path: framed(gzip.compress(request(path)), 1), (GZIP,)),
    "not compressed after all": Case(lambda path: framed(request(path)), (GZIP,)),
    "with a deadline": Case(lambda path: framed(request(path)), (("grpc-timeout", "100S"),)),
}


async def ask(bench: Bench, path: str, case: Case) -> Any:
    if path != WATCH:
        return await bench.ask(path, case.body(path), *case.fields)
    call = await bench.begin(path, *case.fields)
    call.write(case.body(path))
    return await call.answer(messages=1)  # where it begins, it does not end by itself


@pytest.mark.parametrize("case", CASES)
def test_each_method(case: str) -> None:
    async def test(bench: Bench) -> dict[str, Any]:
        return {path: await ask(bench, path, CASES[case]) for path in PATHS}

    found = by_both(test)
    assert len(found) == len(PATHS) == 34


@pytest.mark.parametrize("version", ["refused", "bug", "failed", "large", "damaged"])
def test_each_job_that_is_not_answered_well(version: str) -> None:
    async def test(bench: Bench) -> dict[str, Any]:
        return {path: await bench.ask(path, framed(request(path, version))) for path in JOB_PATHS}

    for path, (answer, line) in by_both(test).items():
        good = version == "damaged" and "Predictions" in path
        in_message = path.endswith(("StreamPredictions2", "ModelStreamInfer"))
        assert good or in_message or dict(answer.trailers)["grpc-status"] == str(line[-1]) != "0", path


def test_a_bug_of_the_server_in_each_method() -> None:
    async def test(bench: Bench) -> dict[str, Any]:
        return {path: await bench.ask(path, framed(request(path))) for path in PATHS if path != WATCH}

    found = by_both(test, broken=True)
    told = {path: dict(answer.trailers).get("grpc-message", "") for path, (answer, _) in found.items()}
    assert told[PREDICTIONS].startswith("Internal error: RuntimeError: boom")
    assert len([message for message in told.values() if "RuntimeError: boom" in message]) > 20


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("a.Service/Nothing", ()),
        (f"{INFERENCE}/Nothing", ()),
        (PREDICTIONS, (("content-type", "application/grpc+proto"),)),
    ],
)
def test_what_is_asked_for(path: str, fields: tuple[tuple[str, str], ...]) -> None:
    async def test(bench: Bench) -> Any:
        call = await bench.begin(path, *fields)
        call.write(framed(request(PREDICTIONS)))
        return await call.answer()

    by_both(test)


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection(version: str) -> None:
    path = f"{next(name for name in NAMES if version in name.split('.'))}/ServerReflectionInfo"

    async def test(bench: Bench) -> Any:
        return [(await bench.ask(path, framed(body)))[0] for body in (b"", b"\x3a\x00", b"\x22\x01x")]

    by_both(test)


@pytest.mark.parametrize("path", JOB_PATHS)
def test_a_call_that_is_cancelled_before_its_job(path: str) -> None:
    """The job is cancelled, and the log says why the call ended."""

    async def test(bench: Bench) -> Any:
        call = await bench.begin(path)
        call.write(framed(request(path, "silent")))
        job = await bench.registry.next_job()
        call.cancel()
        await bench.registry.ended(job)
        call.close()
        return job.cancelled, await bench.line()

    by_both(test)


@pytest.mark.parametrize("path", JOB_PATHS)
def test_a_call_whose_deadline_passes_before_its_job(path: str) -> None:
    """The job is cancelled; client and log learn it. On a busy machine a deadline may pass before there is a job."""
    for deadline in ("50m", "1S", "20S"):
        with suppress(NoJobYetError):
            by_both(partial(_past_deadline, path, deadline))
            return
    raise AssertionError("no job within 20 s")


class NoJobYetError(Exception):
    pass


async def _past_deadline(path: str, deadline: str, bench: Bench) -> Any:
    call = await bench.begin(path, ("grpc-timeout", deadline))
    call.write(framed(request(path, "silent")))
    job, answer = asyncio.create_task(bench.registry.next_job()), asyncio.create_task(call.answer())
    await asyncio.wait({job, answer}, return_when=asyncio.FIRST_COMPLETED)
    if not job.done():
        job.cancel()
        raise NoJobYetError
    status = dict((await answer).trailers)["grpc-status"]  # the library in C tells no more of it
    await bench.registry.ended(job.result())
    return job.result().cancelled, status, await bench.line()


TRANSPORTS = {
    "larger than max_request_size": Case(lambda path: framed(bytes(LIMIT + 1))),
    "unpacks to more than max_request_size": Case(lambda path: framed(gzip.compress(bytes(LIMIT + 1)), 1), (GZIP,)),
    "compressed without saying how": Case(lambda path: framed(gzip.compress(b""), 1)),
    "not what grpc-encoding says": Case(lambda path: framed(b"nonsense", 1), (GZIP,)),
}
"""Calls that the transport itself refuses. For grpc.aio that is gRPC's library in C, which has words of its own; only
the status and that no job begins is the same."""


@pytest.mark.parametrize("case", TRANSPORTS)
def test_what_the_transport_refuses(case: str) -> None:
    async def test(bench: Bench) -> Any:
        found = {}
        for path in (PREDICTIONS, f"{INFERENCE}/Ping", f"{INFERENCE}/StreamPredictions2", f"{MANAGEMENT}/ListModels"):
            call = await bench.begin(path, *TRANSPORTS[case].fields)
            call.write(TRANSPORTS[case].body(path))
            answer = await call.answer()
            found[path] = answer.status, dict(answer.trailers).get("grpc-status"), answer.messages
        return found

    by_both(test)
