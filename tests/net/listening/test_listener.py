"""Addresses: bound at once, errors that say what to do, and nothing left of a socket file."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from msx_core.service_errors import WorkerDied
from msx_net.http.wire import Receive, Scope, Send, StreamBroken, send_whole
from msx_net.listening.address import Address
from msx_net.listening.bind import ListenError
from msx_net.listening.listener import Listener
from tests.loops import run

ANY_PORT = Address("http", "127.0.0.1", 0)


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send_whole(send, 200, [(b"connection", b"close")], b"hello")


async def broken(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"one", "more_body": True})
    raise StreamBroken(WorkerDied("It ended."))


async def get(address: Address, request: bytes = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n") -> bytes:
    if address.is_unix:
        reader, writer = await asyncio.open_unix_connection(address.path)
    else:
        reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def served(address: Address, app: Callable[..., object] = hello, request: bytes | None = None) -> bytes:
    listener = Listener("inference", address, app)
    await listener.start()
    try:
        return await (get(listener.address) if request is None else get(listener.address, request))
    finally:
        await listener.stop(1)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_free_port_is_found_and_told(loop: str) -> None:
    async def test() -> None:
        listener = Listener("inference", ANY_PORT, hello)
        assert listener.address.port
        await listener.start()
        assert (await get(listener.address)).endswith(b"hello")
        await listener.stop(1)
        with pytest.raises(ConnectionRefusedError):
            await get(listener.address)

    run(test(), loop)


def test_a_port_that_is_taken() -> None:
    first = Listener("inference", ANY_PORT, hello)
    with pytest.raises(
        ListenError, match=r"The management address http://127\.0\.0\.1:\d+ is in use .* set management_"
    ):
        Listener("management", first.address, hello)
    first.close()
    Listener("management", first.address, hello).close()


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine(host: str) -> None:
    with pytest.raises(ListenError, match=f"The inference address http://{host}:0 cannot be used"):
        Listener("inference", Address("http", host, 0), hello)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_unix_socket_comes_and_goes(tmp_path: Path, loop: str) -> None:
    path = tmp_path / "s"
    assert run(served(Address("unix", path=str(path))), loop).endswith(b"hello")
    assert not path.exists()


def test_a_socket_file_left_behind_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert run(served(Address("unix", path=str(path)))).endswith(b"hello")


def test_a_socket_that_answers_is_not(tmp_path: Path) -> None:
    address = Address("unix", path=str(tmp_path / "s"))
    first = Listener("inference", address, hello)
    with pytest.raises(ListenError, match=r"is in use by another process.*in config\.properties of the current folder"):
        Listener("inference", address, hello)
    first.close()


def test_a_file_that_is_not_a_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(ListenError, match="cannot be used: a file of this name exists and is no"):
        Listener("inference", Address("unix", path=str(path)), hello)
    assert path.read_text() == "data"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ListenError, match="cannot be used: No such file or directory"):
        Listener("inference", Address("unix", path=str(tmp_path / "no" / "s")), hello)


def test_it_may_be_stopped_before_it_was_started() -> None:
    async def test() -> None:
        await Listener("inference", ANY_PORT, hello).stop(1)

    run(test())


def test_what_is_not_http_has_a_json_answer() -> None:
    answer = run(served(ANY_PORT, request=b"nonsense\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b'"type": "BadRequestException"' in answer


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_broken_stream_is_cut_without_a_last_chunk(loop: str, caplog: pytest.LogCaptureFixture) -> None:
    answer = run(served(ANY_PORT, broken), loop)
    assert b"one" in answer
    assert not answer.endswith(b"0\r\n\r\n")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_bug_is_still_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def bug(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    assert run(served(ANY_PORT, bug)).startswith(b"HTTP/1.1 500")
    assert any(record.exc_info for record in caplog.records)
