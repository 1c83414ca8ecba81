"""One port on all addresses of a host."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from msx_net.connections.listen import BACKLOG, NO_NAME, TRIES, bind, listen, open_all
from tests.loops import run

IN_USE = os.strerror(errno.EADDRINUSE)
OPENERS = pytest.mark.parametrize("opened", [bind, listen])


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Host of two addresses."""

    async def found(self: Any, host: str, port: int, **options: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (f"127.0.0.{number}", port)) for number in (1, 2)]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", found)


class Rival:
    """Takes the second address for as many ports as the first one gets, `times`."""

    def __init__(self, opened: Any, times: int) -> None:
        self.opened, self.times, self.taken = opened, times, ExitStack()
        self.ports: list[int] = []

    def __call__(self, sock: socket.socket, address: Any) -> socket.socket:
        made: socket.socket = self.opened(sock, address)
        if address[0] == "127.0.0.1" and len(self.ports) < self.times:
            self.ports.append(made.getsockname()[1])
            listen(self.taken.enter_context(socket.socket()), ("127.0.0.2", self.ports[-1]))
        return made


def opened_beside(rival: Rival) -> list[tuple[str, int]]:
    with rival.taken:
        sockets = run(open_all("host", 0, rival))
        for sock in sockets:
            rival.taken.enter_context(sock)
        return [sock.getsockname() for sock in sockets]


@OPENERS
def test_a_port_that_one_address_has_not_free_is_not_taken(opened: Any) -> None:
    rival = Rival(opened, 2)
    (first, port), (second, same) = opened_beside(rival)
    assert (first, second, port) == ("127.0.0.1", "127.0.0.2", same)
    assert port not in rival.ports


@OPENERS
def test_it_does_not_try_for_ever(opened: Any) -> None:
    rival = Rival(opened, TRIES)
    with pytest.raises(OSError, match=IN_USE):
        opened_beside(rival)
    assert len(rival.ports) == TRIES


@OPENERS
def test_a_port_that_was_asked_for_is_not_replaced(opened: Any) -> None:
    with listen(socket.socket(), ("127.0.0.2", 0)) as other, pytest.raises(OSError, match=IN_USE):
        run(open_all("host", other.getsockname()[1], opened))


def test_as_many_clients_may_wait_as_the_kernel_lets() -> None:
    """Beyond its queue the kernel answers with SYN cookies, and resets some who took it at its word."""
    with listen(socket.socket(), ("127.0.0.1", 0)) as sock:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
        most = struct.unpack_from("I", info, 28)[0]  # tcpi_sacked: of a socket that listens the places of its queue
    assert most == min(BACKLOG, int(Path("/proc/sys/net/core/somaxconn").read_text()))


@OPENERS
@pytest.mark.parametrize("name", ["a" * 64 + ".example", "a..b"])
def test_a_name_that_cannot_be_looked_up(name: str, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parts are encoded first, also by uvloop."""

    async def found(self: Any, host: str, port: int, **options: Any) -> list[Any]:
        return socket.getaddrinfo(host, port, **options)

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", found)
    with pytest.raises(OSError, match=NO_NAME):
        run(open_all(name, 0, opened))
