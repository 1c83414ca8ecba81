"""Messages between supervisor and frontend."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

import pytest

from msx_frontend.supervision import wire
from msx_frontend.supervision.wire import close_all, receive, send


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def test_a_message_comes_with_its_descriptors(pair: tuple[socket.socket, socket.socket]) -> None:
    read, write = os.pipe()
    send(pair[0], {"ask": "keep", "name": "caf\udce9"}, [write])
    os.close(write)
    message, (fd,) = receive(pair[1])
    assert message == {"ask": "keep", "name": "caf\udce9"}
    assert not os.get_inheritable(fd)
    os.write(fd, b"x")
    assert os.read(read, 1) == b"x"
    close_all([fd, read])


def test_the_end_is_told(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].close()
    with pytest.raises(EOFError):
        receive(pair[1])


def test_what_is_too_large_is_refused_on_both_sides(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LONGEST", 10)
    with pytest.raises(OSError, match=r"a message of 14 bytes with 0 descriptors is too large"):
        send(pair[0], {"a": "12345"})
    pair[0].sendall(struct.pack("!I", 11))
    with pytest.raises(OSError, match=r"a message of 11 bytes is too large"):
        receive(pair[1])
