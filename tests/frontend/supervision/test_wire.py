"""Messages between supervisor and frontend."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator

import pytest

from msx_frontend.supervision import wire
from msx_frontend.supervision.wire import NoRoomError, close_all, receive, send
from tests.descriptors import open_descriptors


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


def test_more_descriptors_than_the_kernel_takes_at_a_time(pair: tuple[socket.socket, socket.socket]) -> None:
    """A group of 100 ranks has 400, which come in order."""
    before = open_descriptors()
    files = [os.memfd_create(f"file-{number}") for number in range(2 * wire.PART + 1)]
    send(pair[0], {"ask": "adopt"}, files)
    message, received = receive(pair[1])
    assert message == {"ask": "adopt"}
    assert [os.readlink(f"/proc/self/fd/{fd}") for fd in received] == [
        os.readlink(f"/proc/self/fd/{fd}") for fd in files
    ]
    assert not any(map(os.get_inheritable, received))
    close_all([*files, *received])
    assert not open_descriptors() - before


def test_descriptors_that_were_not_sent_are_the_end(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(wire.HEAD.pack(2, 1) + b"\0{}")
    with pytest.raises(EOFError):
        receive(pair[1])


def test_what_does_not_fit_is_refused_and_closed(pair: tuple[socket.socket, socket.socket]) -> None:
    """A process at its limit of descriptors gets some of them."""
    files = [os.memfd_create("file") for _ in range(20)]
    send(pair[0], {}, files)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = open_descriptors()
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files) + 10, hard))
    try:
        with pytest.raises(NoRoomError, match="Too many open files"):
            receive(pair[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not open_descriptors() - before
    send(pair[0], {"next": 1})
    assert receive(pair[1]) == ({"next": 1}, [])
    close_all(files)


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
    pair[0].sendall(wire.HEAD.pack(11, 0))
    with pytest.raises(OSError, match=r"a message of 11 bytes with 0 descriptors is too large"):
        receive(pair[1])
