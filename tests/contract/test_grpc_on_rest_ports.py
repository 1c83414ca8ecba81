"""gRPC's own client at REST ports, beside clients of the families: services of the port's kind, with its key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import httpx
from grpc import StatusCode

from msx_core.held_bytes import HeldBytes
from msx_frontend.apis.served_api import installed_apis
from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_frontend.assembly.grpc_server import GrpcServer
from msx_frontend.assembly.grpc_services import grpc_services
from msx_frontend.workflows.workflow import WorkflowRegistry
from msx_net.grpc.messages import message_class
from msx_net.listening.address import Address
from tests.contract.test_both_ways import Ask, Served, served
from tests.free_ports import free_port
from tests.frontend.net.grpc.harness import Request, Response
from tests.http2_transport import Http2Transport
from tests.loops import run

MANAGEMENT = "org.pytorch.serve.grpc.management.ManagementAPIsService"
LIST = message_class("org.pytorch.serve.grpc.management.ListModelsRequest")
LISTED = message_class("org.pytorch.serve.grpc.management.ManagementResponse")
CHECK = message_class("grpc.health.v1.HealthCheckRequest")
CHECKED = message_class("grpc.health.v1.HealthCheckResponse")
LIST_SERVICES = b"\x3a\x00"
"""A ServerReflectionRequest."""


@asynccontextmanager
async def server(folder: Path, *, keys: bool = False, **settings: Any) -> AsyncIterator[Served]:
    async with served(folder, keys=keys, **settings) as one:
        front, harness = one.front, one.harness
        services = grpc_services(
            harness.config,
            one.registry,
            harness.health,
            front.model_api,
            front.repository,
            None,
            HeldBytes(),
            WorkflowRegistry(),
            installed_apis(),
        )
        grpc_server = GrpcServer(harness.config, services, one.registry, harness.health, one.tokens)
        calls = [*front.answer_calls(grpc_server.calls_of)]
        try:
            yield one
        finally:
            for port in calls:
                port.end_watches()
                await port.stop()


def target(one: Served, listener: str = "inference") -> str:
    return str(one.addresses[listener]).removeprefix("http://")


def unary(channel: grpc.aio.Channel, path: str, asked: Any, answered: Any) -> Any:
    return channel.unary_unary(f"/{path}", asked.SerializeToString, answered.FromString)


async def code_of(call: Any) -> StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return StatusCode.OK


def test_unary_streams_health_and_reflection(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            server(tmp_path / "one") as one,
            grpc.aio.insecure_channel(target(one)) as channel,
            httpx.AsyncClient(transport=Http2Transport()) as families,
        ):
            asked = Request(model_name="m", input={"data": b"hello"})
            predict = unary(channel, f"{SERVICE}/Predictions", Request, Response)
            assert [reply.prediction for reply in await asyncio.gather(*(predict(asked) for _ in range(20)))] == [
                b"hello"
            ] * 20
            stream = channel.unary_stream(
                f"/{SERVICE}/StreamPredictions", Request.SerializeToString, Response.FromString
            )
            pieces = Request(model_name="m", input={"data": b"pieces"})
            assert [reply.prediction async for reply in stream(pieces)] == [b"a word", b"a word"]
            check = unary(channel, "grpc.health.v1.Health/Check", CHECK, CHECKED)
            assert (await check(CHECK())).status in (1, 2)
            reflect = channel.stream_stream(
                "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", bytes, bytes
            )
            names = b"".join([reply async for reply in reflect(iter([LIST_SERVICES]))])
            assert SERVICE.encode() in names
            assert MANAGEMENT.encode() not in names
            assert (await one.ask(families, Ask("POST", "/predictions/m", b"hello")))[3] == b"hello"
            listing = unary(channel, f"{MANAGEMENT}/ListModels", LIST, LISTED)
            assert await code_of(listing(LIST())) is StatusCode.UNIMPLEMENTED

    run(test())


def test_the_key_of_the_ports_kind(tmp_path: Path) -> None:
    async def test() -> None:
        async with (
            server(tmp_path / "one", keys=True) as one,
            grpc.aio.insecure_channel(target(one)) as inference,
            grpc.aio.insecure_channel(target(one, "management")) as management,
        ):
            for key, codes in (
                ("inference", (StatusCode.OK, StatusCode.PERMISSION_DENIED)),
                ("management", (StatusCode.PERMISSION_DENIED, StatusCode.OK)),
            ):
                metadata = (("authorization", one.keys[key]),)
                predict = unary(inference, f"{SERVICE}/Predictions", Request, Response)
                listing = unary(management, f"{MANAGEMENT}/ListModels", LIST, LISTED)
                asked = Request(model_name="m", input={"data": b"hello"})
                found = (
                    await code_of(predict(asked, metadata=metadata)),
                    await code_of(listing(LIST(), metadata=metadata)),
                )
                assert found == codes

    run(test())


def test_a_merged_listener_has_both_kinds(tmp_path: Path) -> None:
    address = Address("http", "127.0.0.1", free_port())

    async def test() -> None:
        async with (
            server(tmp_path / "one", inference_address=address, management_address=address) as one,
            grpc.aio.insecure_channel(target(one)) as channel,
        ):
            assert "management" not in one.addresses
            assert await code_of(unary(channel, f"{MANAGEMENT}/ListModels", LIST, LISTED)(LIST())) is StatusCode.OK
            asked = Request(model_name="m", input={"data": b"hello"})
            assert await code_of(unary(channel, f"{SERVICE}/Predictions", Request, Response)(asked)) is StatusCode.OK

    run(test())


def test_calls_end_with_the_server(tmp_path: Path) -> None:
    """Calls that would not end by themselves end, too."""

    async def test() -> None:
        channel: Any = None
        async with server(tmp_path / "one") as one:
            channel = grpc.aio.insecure_channel(target(one))
            watch = channel.unary_stream("/grpc.health.v1.Health/Watch", CHECK.SerializeToString, CHECKED.FromString)
            call = watch(CHECK())
            assert (await call.read()).status in (1, 2)
        assert await cast(Any, call).code() is not StatusCode.OK
        await channel.close()

    run(test())
