"""Certificates of servers that change while they serve, and those that clients have to show: HTTP and gRPC."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from msx_frontend.config import ServerConfig
from msx_frontend.config.tls_listeners import GRPC, HTTP, ClientCaError, server_tls
from msx_net.http.wire import Receive, Scope, Send, send_whole
from msx_net.listening.address import Address
from msx_net.listening.listener import Listener
from msx_net.tls import listeners as tls_listeners
from msx_net.tls.identity import TlsError
from msx_net.tls.listeners import ServerTls
from tests.certificates import Certificate, write_keystore, write_pem
from tests.frontend.net.grpc.harness import serving
from tests.loops import run

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
HTTPS = Address("https", "127.0.0.1", 0)
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture(scope="module")
def first() -> Certificate:
    return Certificate.make()


@pytest.fixture(scope="module")
def second() -> Certificate:
    """Its key is of another kind: a context would keep both."""
    return Certificate.make(key=rsa.generate_private_key(65537, 2048))


def tls_of(config: ServerConfig) -> ServerTls:
    tls = server_tls(config)
    assert tls is not None
    return tls


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send_whole(send, 200, [], b"hello")


def config_of(folder: Path, own: Certificate, **settings: Any) -> ServerConfig:
    key, certificate = write_pem(own, folder)
    files = {"private_key_file": key, "certificate_file": certificate}
    return ServerConfig(**{"inference_address": HTTPS, **files, **settings})


def trusting(server: Certificate, own: Certificate | None = None, folder: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=server.pem.decode())
    if own is not None:
        assert folder is not None
        (folder / "client").mkdir(exist_ok=True)
        key, certificate = write_pem(own, folder / "client")
        context.load_cert_chain(certificate, key)
    return context


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connected(cls, address: Address, context: ssl.SSLContext) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", address.port, ssl=context, server_hostname="localhost"))

    async def get(self) -> bytes:
        """The body. Raises ssl.SSLError or ConnectionError where the server wants no more of us."""
        self._writer.write(GET)
        await self._writer.drain()
        await self._reader.readuntil(b"\r\n\r\n")
        return await self._reader.readexactly(5)

    @property
    def certificate(self) -> bytes:
        return self._writer.get_extra_info("ssl_object").getpeercert(binary_form=True)  # type: ignore[no-any-return]

    async def close(self) -> None:
        self._writer.transport.abort()
        await asyncio.sleep(0)


async def is_refused(address: Address, context: ssl.SSLContext) -> bool:
    """At the handshake, or with TLS 1.3 when it would read."""
    try:
        client = await Client.connected(address, context)
    except OSError:
        return True
    try:
        await client.get()
    except (OSError, asyncio.IncompleteReadError):
        return True
    finally:
        await client.close()
    return False


def on(tls: ServerTls | None, test: Callable[[Address], Coroutine[Any, Any, None]], loop: str = "uvloop") -> None:
    async def main() -> None:
        found = tls and tls.of("inference")
        assert found
        listener = Listener("inference", HTTPS, hello, found)
        await listener.start()
        try:
            await test(listener.address)
        finally:
            await listener.stop(1)

    run(main(), loop)


# -- another certificate --


@LOOPS
@pytest.mark.parametrize("kind", ["pem", "keystore"])
def test_new_connections_get_the_new_certificate_and_others_go_on(
    first: Certificate, second: Certificate, tmp_path: Path, loop: str, kind: str
) -> None:
    config = config_of(tmp_path, first)
    if kind == "keystore":
        config = ServerConfig(inference_address=HTTPS, keystore=write_keystore(first, tmp_path))
    tls = server_tls(config)
    assert tls is not None

    async def test(address: Address) -> None:
        old = await Client.connected(address, trusting(first))
        assert await old.get() == b"hello"
        assert not tls.look(), "nothing has changed"
        (write_keystore if kind == "keystore" else write_pem)(second, tmp_path)
        assert tls.look()
        new = await Client.connected(address, trusting(second))
        assert await new.get() == b"hello"
        assert await old.get() == b"hello"
        with pytest.raises(ssl.SSLCertVerificationError):
            await Client.connected(address, trusting(first))
        await old.close()
        await new.close()

    on(tls, test, loop)


def test_a_link_that_leads_elsewhere_is_another_file(first: Certificate, second: Certificate, tmp_path: Path) -> None:
    """As Kubernetes changes a Secret: all files at once, by one link."""
    for name, own in (("a", first), ("b", second)):
        (tmp_path / name).mkdir()
        write_pem(own, tmp_path / name)
    (tmp_path / "now").symlink_to("a")
    now = tmp_path / "now"
    tls = tls_of(
        ServerConfig(
            inference_address=HTTPS, private_key_file=now / "key.pem", certificate_file=now / "certificate.pem"
        )
    )
    assert tls.identity.chain == first.pem
    (tmp_path / "next").symlink_to("b")
    os.replace(tmp_path / "next", now)
    assert tls.look()
    assert tls.identity.chain == second.pem


def test_what_cannot_be_used_is_told_once_and_changes_nothing(
    first: Certificate, second: Certificate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The certificate is there before its key."""
    tls = tls_of(config_of(tmp_path, first))
    (tmp_path / "certificate.pem").write_bytes(second.pem)
    with caplog.at_level(logging.WARNING, "msx.tls"):
        assert not tls.look()
        assert not tls.look()
    assert tls.identity.chain == first.pem
    (line,) = caplog.messages
    assert line.startswith(
        f"private_key_file: the key in {tmp_path / 'key.pem'} does not belong to the first certificate"
    )
    assert line.endswith("The listeners go on with the certificates that they have, until the files change")
    (tmp_path / "key.pem").unlink()
    assert not tls.look()
    (tmp_path / "key.pem").write_bytes(second.key_pem)
    assert tls.look()
    assert tls.identity.chain == second.pem


def test_who_watches_is_told(
    first: Certificate, second: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_listeners, "LOOK_EVERY", 0)
    tls = tls_of(config_of(tmp_path, first))

    async def test() -> None:
        told = asyncio.Event()
        watch = asyncio.create_task(tls.watch(told.set))
        write_pem(second, tmp_path)
        await asyncio.wait_for(told.wait(), 120)
        watch.cancel()
        assert tls.identity.chain == second.pem

    run(test(), "uvloop")


@pytest.mark.parametrize(
    "config", [ServerConfig(), ServerConfig(private_key_file=Path("gone"), certificate_file=Path("gone"))]
)
def test_files_that_no_listener_needs_are_not_read(config: ServerConfig) -> None:
    assert server_tls(config) is None


@pytest.mark.parametrize(
    "settings",
    [{"inference_address": HTTPS}, {"metrics_address": HTTPS}, {"enable_grpc_ssl": True}],
)
def test_files_are_read_where_a_listener_needs_them(settings: dict[str, Any]) -> None:
    with pytest.raises(TlsError, match="there is no certificate: set private_key_file and certificate_file"):
        server_tls(ServerConfig(**settings))


# -- certificates of clients --


@LOOPS
def test_who_shows_no_certificate_or_another_is_refused(
    first: Certificate, second: Certificate, tmp_path: Path, loop: str
) -> None:
    (tmp_path / "ca.pem").write_bytes(second.pem)
    tls = server_tls(config_of(tmp_path, first, inference_client_ca=tmp_path / "ca.pem"))

    async def test(address: Address) -> None:
        client = await Client.connected(address, trusting(first, second, tmp_path))
        assert await client.get() == b"hello"
        await client.close()
        for own in (None, Certificate.make()):
            assert await is_refused(address, trusting(first, own, tmp_path))

    on(tls, test, loop)


def test_another_authority_counts_for_new_connections(first: Certificate, second: Certificate, tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_bytes(first.pem)
    tls = server_tls(config_of(tmp_path, first, client_ca=authority))

    async def test(address: Address) -> None:
        assert tls is not None
        old = await Client.connected(address, trusting(first, first, tmp_path))
        assert await old.get() == b"hello"
        authority.write_bytes(second.pem)
        assert tls.look()
        new = await Client.connected(address, trusting(first, second, tmp_path))
        assert (await new.get(), await old.get()) == (b"hello", b"hello")
        assert await is_refused(address, trusting(first, first, tmp_path))
        await old.close()
        await new.close()

    on(tls, test)


def test_each_listener_has_its_own(first: Certificate, second: Certificate, tmp_path: Path) -> None:
    for name, own in (("all", first), ("few", second)):
        (tmp_path / name).write_bytes(own.pem)
    tls = tls_of(
        config_of(
            tmp_path,
            first,
            client_ca=tmp_path / "all",
            management_address=HTTPS,
            management_client_ca=tmp_path / "few",
            enable_grpc_ssl=True,
            grpc_management_client_ca=tmp_path / "few",
        )
    )
    found = {name: listener.now[1] for name in (*HTTP, *GRPC) if (listener := tls.of(name))}
    few = ("management", "grpc_management")
    assert found == {name: second.pem if name in few else first.pem for name in ("inference", "grpc_inference", *few)}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"client_ca": Path("ca")},
            "client_ca is set, but no listener speaks TLS, so that clients are not asked for a certificate: write "
            "addresses with https://, or set enable_grpc_ssl=true, in config.properties",
        ),
        (
            {"metrics_client_ca": Path("ca")},
            "metrics_client_ca is set, but metrics_address (http://127.0.0.1:8082) does not speak TLS: write it with "
            "https://, or leave metrics_client_ca out",
        ),
        (
            {"metrics_client_ca": Path("ca"), "enable_metrics_api": False},
            "metrics_client_ca is set, but that listener is switched off: leave it out, or set enable_metrics_api=true",
        ),
        (
            {"grpc_inference_client_ca": Path("ca")},
            "grpc_inference_client_ca is set, but gRPC does not speak TLS: set enable_grpc_ssl=true, or leave "
            "grpc_inference_client_ca out",
        ),
        (
            {
                "inference_address": Address("https", "127.0.0.1", 8443),
                "management_address": Address("https", "127.0.0.1", 8443),
                "management_client_ca": Path("ca"),
            },
            "management_client_ca is set, but inference and management have one listener (https://127.0.0.1:8443): set "
            "inference_client_ca for both, or give management_address a port of its own",
        ),
    ],
)
def test_a_demand_that_no_listener_can_make(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ClientCaError) as error:
        server_tls(ServerConfig(**settings))
    assert str(error.value) == words


def test_listeners_that_do_not_demand_what_all_should_are_told(
    first: Certificate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "msx.tls"):
        server_tls(config_of(tmp_path, first, client_ca=tmp_path / "certificate.pem"))
    assert set(caplog.messages) == {
        "client_ca: these listeners do not speak TLS and demand no certificate: "
        "management, metrics, grpc_inference, grpc_management"
    }


def test_authorities_that_are_not_certificates(first: Certificate, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("x")
    with pytest.raises(TlsError, match=r"^client_ca: .*ca\.pem holds no certificate in PEM format$"):
        server_tls(config_of(tmp_path, first, client_ca=tmp_path / "ca.pem"))


# -- gRPC, by its own clients --


def credentials(server: Certificate, own: Certificate | None = None) -> grpc.ChannelCredentials:
    if own is None:
        return grpc.ssl_channel_credentials(server.pem)
    return grpc.ssl_channel_credentials(server.pem, own.key_pem, own.pem)


async def answers(channel: grpc.aio.Channel) -> bool:
    method = channel.unary_unary("/grpc.health.v1.Health/Check", bytes, bytes)
    try:
        return bool(await method(b"", timeout=60))
    except grpc.aio.AioRpcError as error:
        return error.code() is not grpc.StatusCode.UNAVAILABLE


@pytest.mark.usefixtures("transport")
def test_grpc(first: Certificate, second: Certificate, tmp_path: Path) -> None:
    """Both: another certificate without a lost call, and clients that have to show one."""
    authority = tmp_path / "ca.pem"
    authority.write_bytes(first.pem)
    tls = tls_of(config_of(tmp_path, first, enable_grpc_ssl=True, grpc_inference_client_ca=authority))

    async def test() -> None:
        async with serving(tls=tls, enable_grpc_ssl=True) as served:
            address = served.server.inference.address.replace("127.0.0.1", "localhost")
            async with grpc.aio.secure_channel(address, credentials(first, first)) as old:
                assert await answers(old)
                write_pem(second, tmp_path)
                authority.write_bytes(second.pem)
                assert tls.look()
                async with grpc.aio.secure_channel(address, credentials(second, second)) as new:
                    assert await answers(new)
                async with grpc.aio.secure_channel(address, credentials(second)) as nameless:
                    assert not await answers(nameless)
                assert await answers(old)
            management = served.server.management.address.replace("127.0.0.1", "localhost")
            async with grpc.aio.secure_channel(management, credentials(second)) as anybody:
                assert await answers(anybody)

    asyncio.run(test())
