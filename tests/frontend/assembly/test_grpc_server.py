import asyncio
import socket
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha import reflection_pb2

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_frontend.assembly.grpc_server import GrpcServer, inference_listen, management_listen
from msx_frontend.config import ServerConfig
from msx_net.connections.limits import ConnectionLimits
from msx_net.grpc.aio.listener import options
from msx_net.grpc.listen import GrpcListen, GrpcListenError
from msx_net.grpc.reflection import NAMES
from tests.frontend.net.grpc.harness import TRANSPORT, Health, Registry, serving

pytestmark = pytest.mark.usefixtures("transport")


def server(**settings: Any) -> GrpcServer:
    return GrpcServer(
        ServerConfig(**{"grpc_management_port": 0, "grpc_transport": TRANSPORT.chosen, **settings}),
        [],
        Registry(),
        Health(),
        None,
    )


def test_port_0_takes_any_free_one() -> None:
    async def main() -> None:
        async with serving() as served:
            assert served.server.inference.bound_port > 0
            assert served.server.inference.address == f"127.0.0.1:{served.server.inference.bound_port}"

    asyncio.run(main())


def test_a_port_that_is_taken(capfd: pytest.CaptureFixture[str]) -> None:
    async def main() -> str:
        async with serving() as served:
            second = server(grpc_inference_port=served.server.inference.bound_port)
            with pytest.raises(GrpcListenError) as caught:
                await second.start()
            await second.stop(0)
            return str(caught.value).replace(str(served.server.inference.bound_port), "PORT")

    assert asyncio.run(main()) == (
        "gRPC cannot listen on 127.0.0.1:PORT: Address already in use. Stop what listens there, or set "
        "grpc_inference_address and grpc_inference_port in config.properties."
    )
    assert capfd.readouterr() == ("", "")


def test_a_port_that_any_other_program_has() -> None:
    async def main(port: int) -> None:
        other = server(grpc_inference_port=port)
        with pytest.raises(GrpcListenError, match="Address already in use"):
            await other.start()
        await other.stop(0)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        asyncio.run(main(taken.getsockname()[1]))


def test_an_address_that_is_not_ours() -> None:
    async def main() -> None:
        other = server(grpc_inference_address="192.0.2.1")
        with pytest.raises(GrpcListenError, match="Cannot assign requested address"):
            await other.start()
        await other.stop(0)

    asyncio.run(main())


def test_a_port_is_free_again_after_stop() -> None:
    async def main() -> None:
        async with serving() as served:
            port = served.server.inference.bound_port
        again = server(grpc_inference_port=port)
        await again.start()
        await again.stop(0)

    asyncio.run(main())


def test_options_come_from_the_configuration() -> None:
    config = ServerConfig(
        grpc_inference_address="::1",
        grpc_inference_port=1,
        max_request_size=2,
        max_response_size=3,
        grpc_inference_max_connection_age_ms=4,
        grpc_inference_max_connection_age_grace_ms=5,
    )
    listen = inference_listen(config)
    assert listen == GrpcListen("grpc_inference", "::1", 1, 2, 3, 4, 5)
    assert listen.target(1) == "[::1]:1"
    assert set(options(listen, ConnectionLimits())) > {
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", 2),
        ("grpc.max_connection_age_ms", 4),
        ("grpc.max_connection_age_grace_ms", 5),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.max_concurrent_streams", 1_000),
        ("grpc.max_metadata_size", 16 << 10),
        ("grpc.absolute_max_metadata_size", 16 << 10),
    }


def test_the_management_port_has_ages_of_its_own() -> None:
    ages: Any = {"grpc_management_max_connection_age_ms": 4, "grpc_management_max_connection_age_grace_ms": 5}
    config = ServerConfig(**ages)
    assert [(one.max_age, one.max_age_grace) for one in (inference_listen(config), management_listen(config))] == [
        (None, None),
        (4, 5),
    ]


def test_connections_live_for_ever_by_default() -> None:
    named = [name for name, _ in options(inference_listen(ServerConfig()), ConnectionLimits())]
    assert not [name for name in named if "connection_age" in name]


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_shows_our_services_and_itself(version: str) -> None:
    own = f"grpc.reflection.{version}.ServerReflection"

    async def ask(channel: grpc.aio.Channel, **question: str) -> Any:
        call = channel.stream_stream(
            f"/{own}/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )(iter([reflection_pb2.ServerReflectionRequest(**question)]))
        return await anext(aiter(call))

    async def main() -> None:
        async with serving() as served:
            listed = await ask(served.channel, list_services="")
            names = {service.name for service in listed.list_services_response.service}
            assert names == {SERVICE, "grpc.health.v1.Health", *NAMES}
            packages = {file.package for file in files(await ask(served.channel, file_containing_symbol=SERVICE))}
            assert packages == {"org.pytorch.serve.grpc.inference", "google.rpc", "google.protobuf"}
            (itself,) = files(await ask(served.channel, file_containing_symbol=own))
            assert itself.package == f"grpc.reflection.{version}"
            assert itself.service[0].method[0].input_type == f".{itself.package}.ServerReflectionRequest"
            unknown = await ask(served.channel, file_containing_symbol="nobody.Knows")
            assert unknown.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]

    def files(response: Any) -> list[FileDescriptorProto]:
        return [FileDescriptorProto.FromString(one) for one in response.file_descriptor_response.file_descriptor_proto]

    asyncio.run(main())
