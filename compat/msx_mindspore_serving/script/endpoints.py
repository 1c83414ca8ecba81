"""The listeners that a start script opens: MindSpore Serving's API at exactly these addresses, without keys."""

import asyncio
import ipaddress
import logging
import time
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from msx_core.start_errors import StartError
from msx_frontend.embedding import LISTENER_LIMIT, Server, ServerConfig, connection_limits
from msx_mindspore_serving.family.family import mindspore_serving_alone
from msx_mindspore_serving.family.grpc.service import SERVICE
from msx_mindspore_serving.family.servables import Servables
from msx_mindspore_serving.script.channel import CommandError
from msx_net.grpc.listen import GrpcListen, GrpcListener
from msx_net.listening.address import Address
from msx_net.listening.listener import Listener, ListenerContext
from msx_net.tls.identity import TlsError, authorities_of, load_identity, source
from msx_net.tls.listeners import ListenerTls
from msx_net.tls.validity import ExpiryLog

log = logging.getLogger("msx.script")

TEXTS = "llm-serving"
"""Name of the server's family of llm-serving's routes."""


class TlsFiles(msgspec.Struct, frozen=True):
    """Paths of PEM files; with an authority, clients must have a certificate that it has signed."""

    certificate: str
    private_key: str
    custom_ca: str | None = None


class OpenEndpoint(msgspec.Struct, frozen=True):
    """`limit` is in bytes of a message, 0 for the server's own; the address is `host:port`, or `unix:path` for gRPC.

    `api`: grpc, rest, or text, which is llm-serving's.
    """

    api: str
    address: str
    limit: int
    tls: TlsFiles | None = None


class _Opened(Protocol):
    async def stop(self, limit: float, /) -> None: ...


class _ListenAt(NamedTuple):
    host: str
    port: int
    path: str = ""


class ScriptEndpoints:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._context = server.models.context
        self._open: list[_Opened] = []
        self.addresses: list[str] = []

    async def open(self, wanted: OpenEndpoint) -> None:
        """Raises CommandError: `bind`, `certificate`, `private_key` or `custom_ca`."""
        place = _place(wanted.address)
        tls = None if wanted.tls is None else await asyncio.to_thread(_read, wanted.tls)
        try:
            listener = await self._start(wanted, place, tls)
        except (StartError, OSError) as error:
            log.error("%s", error)
            raise CommandError("bind", str(error)) from None
        self._open.append(listener)
        self.addresses.append(f"{wanted.api} {wanted.address}")
        self._tell(wanted, place)

    async def close(self) -> None:
        await asyncio.gather(*(listener.stop(LISTENER_LIMIT) for listener in self._open))
        self._open.clear()

    async def _start(self, wanted: OpenEndpoint, place: _ListenAt, tls: ListenerTls | None) -> _Opened:
        if wanted.api in ("rest", "text"):
            rest = self._rest(wanted, place, tls)
            await rest.start()
            return rest
        grpc = self._grpc(wanted, place, tls)
        await grpc.start()
        return grpc

    def _rest(self, wanted: OpenEndpoint, place: _ListenAt, tls: ListenerTls | None) -> Listener:
        """Raises ListenError."""
        context, front = self._context, self._server.front
        family, limit = mindspore_serving_alone(Servables(context.registry), wanted.limit), wanted.limit
        if wanted.api == "text":
            family, limit = front.family(TEXTS), context.config.max_request_size
        exchange = front.open_to_all(family, limit)
        return Listener(
            f"serving_{wanted.api}",
            Address("https" if tls else "http", place.host, place.port),
            exchange,
            tls,
            exchange.direct(),
            context=ListenerContext(connection_limits(context.config), context.connections),
        )

    def _grpc(self, wanted: OpenEndpoint, place: _ListenAt, tls: ListenerTls | None) -> GrpcListener:
        listen = GrpcListen(
            keys="serving_grpc",
            host=place.host,
            port=place.port,
            path=place.path,
            max_request_size=wanted.limit,
            max_response_size=wanted.limit,
        )
        return self._server.grpc.open_to_all(listen, SERVICE, tls)

    def _tell(self, wanted: OpenEndpoint, place: _ListenAt) -> None:
        log.info("the start script listens on %s (%s)", wanted.address, wanted.api)
        if not place.path and not _is_loopback(place.host) and (wanted.tls is None or wanted.tls.custom_ca is None):
            log.warning(
                "%s asks for no key, as MindSpore Serving does not: whoever reaches it may use the servables. Keep it "
                "from others by the network, or by SSLConfig with verify_client",
                wanted.address,
            )


def _place(address: str) -> _ListenAt:
    if address.startswith("unix:"):
        return _ListenAt("", 0, address.removeprefix("unix:"))
    host, _, port = address.rpartition(":")
    return _ListenAt(host[1:-1] if host.startswith("[") and host.endswith("]") else host, int(port))


def _read(files: TlsFiles) -> ListenerTls:
    """Raises CommandError. Reads the files."""
    config = ServerConfig(certificate_file=Path(files.certificate), private_key_file=Path(files.private_key))
    try:
        identity = load_identity(config)
    except TlsError as error:
        kind = "certificate" if str(error).startswith("certificate_file") else "private_key"
        raise _unusable(kind, error) from None
    try:
        authorities = None if files.custom_ca is None else authorities_of("custom_ca", Path(files.custom_ca))
    except TlsError as error:
        raise _unusable("custom_ca", error) from None
    ExpiryLog(source(config)).look(identity.validity, time.time())
    return ListenerTls(identity, authorities)


def _unusable(kind: str, error: TlsError) -> CommandError:
    log.error("%s", error)
    return CommandError(kind, str(error))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
