"""A port for agents: who is let in, who is not answered, and when it closes."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import msgspec
import pytest

from msx_ray.agent_messages import HELLO, Hello
from msx_ray.certificate import Identity, make_identity
from msx_ray.dial import DialTarget, dial
from msx_ray.door import Door, StreamName
from msx_ray.tls import client_context, server_context
from msx_ray.unverified_connection import UnverifiedConnection
from tests.loops import run

HERE = "127.0.0.1"


@pytest.fixture(scope="module")
def identity() -> Identity:
    return make_identity()


class Bytes(asyncio.Protocol):
    def __init__(self) -> None:
        self.read = b""
        self.lost = asyncio.Event()
        self.came = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.read += data
        self.came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


@asynccontextmanager
async def opened(identity: Identity, *expected: StreamName) -> AsyncIterator[tuple[Door, DialTarget]]:
    door = Door(server_context(identity), expected)
    port = await door.open(HERE)
    try:
        yield door, DialTarget([HERE], port, identity.pin)
    finally:
        door.close()


async def answer_to(target: DialTarget, data: bytes) -> bytes:
    """Answer to somebody who sends these bytes, until the connection ends."""
    reader, writer = await asyncio.open_connection(HERE, target.port, ssl=client_context())
    try:
        writer.write(data)
        return await reader.read()
    except OSError:
        return b""
    finally:
        await ended(writer)


async def ended(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def hello_of(key: str, stream: str = "data") -> bytes:
    return msgspec.json.encode(Hello(key, stream)).ljust(HELLO)


def test_all_streams_come_and_the_port_is_closed(identity: Identity) -> None:
    async def test() -> None:
        async with opened(identity, ("data", 0), ("data", 1)) as (door, target):
            first = await dial(target, Hello(door.key, "data", rank=0), Bytes())
            assert not door.arrived.done()
            await dial(target, Hello(door.key, "data", rank=1), Bytes())
            streams = await door.arrived
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(HERE, target.port)
            mine = Bytes()
            await streams["data", 0].connect(mine)
            first.transport.write(b"x")
            await mine.came.wait()
            assert mine.read == b"x"
            with pytest.raises(ConnectionError, match="has ended"):
                await streams["data", 0].connect(Bytes())
            mine.transport.close()
            await first.lost.wait()
            await mine.lost.wait()

    run(test())


def test_nobody_without_the_key_is_answered(identity: Identity) -> None:
    async def test() -> None:
        async with opened(identity, ("data", 0)) as (door, target):
            for data in (
                hello_of("0" * len(door.key)),
                hello_of(""),
                hello_of("é"),
                hello_of(door.key, "other"),
                hello_of(door.key) + b"more",
                b"\xff" * HELLO,
                b"GET / HTTP/1.1\r\n\r\n".ljust(HELLO),
                b"{" * 100_000,
            ):
                assert await answer_to(target, data) == b"", data
            assert not door.arrived.done()
            await dial(target, Hello(door.key, "data"), Bytes())
            assert door.arrived.done()

    run(test())


def test_a_stream_comes_once(identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_ray.dial.PAUSES", (0.0,))

    async def test() -> None:
        first = Bytes()
        async with opened(identity, ("data", 0), ("data", 1)) as (door, target):
            await dial(target, Hello(door.key, "data"), first)
            with pytest.raises(ConnectionError, match="it closed the connection"):
                await dial(target, Hello(door.key, "data"), Bytes())
        await first.lost.wait()

    run(test())


HALF_A_HANDSHAKE = b"\x16\x03\x01\x02\x00\x01"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_who_is_silent_does_not_stay(identity: Identity, monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    monkeypatch.setattr("msx_ray.unverified_connection.GREETING", 0.1)

    async def test() -> None:
        async with opened(identity, ("data", 0)) as (door, target):
            assert await answer_to(target, b"") == b""
            assert await answer_to(target, hello_of(door.key)[:-1]) == b""
            for said in (b"", HALF_A_HANDSHAKE):
                reader, writer = await asyncio.open_connection(HERE, target.port)
                writer.write(said)
                with contextlib.suppress(ConnectionResetError):
                    assert await reader.read() == b""
                await ended(writer)
            assert (len(door.limits.silent), len(door.limits.speaking)) == (0, 0)

    run(test(), loop)


class Knocking(asyncio.Transport):
    aborted = False

    def abort(self) -> None:
        self.aborted = True


@contextmanager
def connection_to(door: Door) -> Iterator[UnverifiedConnection]:
    """One whose handshake is the test's."""
    near, far = socket.socketpair()
    with far:
        near.setblocking(False)
        connection = UnverifiedConnection(door, near, HERE)
        asyncio.get_running_loop().remove_reader(near)
        yield connection
        connection.end()
        near.close()


def test_who_leaves_before_the_handshake_is_not_counted(identity: Identity) -> None:
    async def test() -> None:
        async with opened(identity, ("data", 0)) as (door, target):
            _, writer = await asyncio.open_connection(HERE, target.port)
            while not len(door.limits.silent):
                await asyncio.sleep(0)
            await ended(writer)
            while len(door.limits.silent):
                await asyncio.sleep(0)
            assert not len(door.limits.speaking)
            assert not door._unverified

    run(test())


def test_what_comes_before_the_reader_does_is_kept(identity: Identity) -> None:
    """A loop may hand over what it had decrypted before it was told to pause."""

    class Calm(Knocking):
        def pause_reading(self) -> None: ...
        def resume_reading(self) -> None: ...
        def write(self, data: Any) -> None: ...
        def is_closing(self) -> bool:
            return False

        def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...

    async def test() -> None:
        door = Door(server_context(identity), [("data", 0)])
        with connection_to(door) as connection:
            connection.connection_made(transport := Calm())
            connection.data_received(msgspec.json.encode(Hello(door.key, "data")).ljust(HELLO))
            connection.data_received(b"early")
            await (await door.arrived)["data", 0].connect(reader := Bytes())
            assert reader.read == b"early"
            assert not transport.aborted

    run(test())


def test_a_handshake_that_is_complete_when_it_ends_does_not_stay(identity: Identity) -> None:
    async def test() -> None:
        door = Door(server_context(identity), [("data", 0)])
        with connection_to(door) as connection:
            connection.end()
            connection.connection_made(transport := Knocking())
            assert transport.aborted

    run(test())


def test_who_was_refused_is_not_judged_again_and_the_log_stays_short(
    identity: Identity, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        door = Door(server_context(identity), [("data", 0)])
        await door.open(HERE)
        for _ in range(3):
            with connection_to(door) as connection:
                connection.connection_made(Knocking())
                for _ in range(3):
                    connection.data_received(b"x" * (HELLO + 1))
        door.close()

    run(test())
    assert [one.getMessage() for one in caplog.records] == [
        "a connection to a port for agents was refused: it does not have the key (127.0.0.1)",
        "3 connections to a port for agents were refused in all",
    ]


def test_another_certificate(identity: Identity) -> None:
    async def test() -> None:
        async with opened(identity, ("data", 0)) as (door, target):
            wrong = DialTarget(target.addresses, target.port, make_identity().pin)
            with pytest.raises(ConnectionError, match="the certificate is not the expected one"):
                await dial(wrong, Hello(door.key, "data"), Bytes())
            assert not door.arrived.done()

    run(test())


def test_the_first_address_that_answers(identity: Identity) -> None:
    async def test() -> None:
        async with opened(identity, ("data", 0)) as (door, target):
            several = DialTarget(["127.0.0.9", HERE], target.port, target.pin)
            await dial(several, Hello(door.key, "data"), Bytes())
            assert door.arrived.done()

    run(test())


def test_a_port_that_is_closed_before(identity: Identity) -> None:
    async def test() -> None:
        async with opened(identity, ("data", 0), ("data", 1)) as (door, target):
            connection = await dial(target, Hello(door.key, "data"), Bytes())
            door.close("nobody waits any more")
            with pytest.raises(ConnectionAbortedError, match="nobody waits any more"):
                await door.arrived
            await connection.lost.wait()

    run(test())


def test_a_certificate_is_valid_since_yesterday(identity: Identity) -> None:
    """Clocks of nodes differ."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(identity.pem[identity.pem.index(b"-----BEGIN CERT") :])
    now = datetime.datetime.now(datetime.timezone.utc)
    assert now - certificate.not_valid_before_utc > datetime.timedelta(days=1)
    assert certificate.not_valid_after_utc - now > datetime.timedelta(days=3000)
    assert ssl.TLSVersion.TLSv1_3 == client_context().minimum_version
