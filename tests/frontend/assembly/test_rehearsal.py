"""Addresses of a server that is to follow another one: what cannot be bound later is found before."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from msx_core.start_errors import StartError
from msx_frontend.assembly.rehearsal import rehearse
from msx_net.listening.address import Address
from msx_net.listening.bind import kept_name
from msx_net.listening.kept import KEEPS_NONE, KeepsNone, KeepsSockets
from tests.free_ports import free_port
from tests.frontend.assembly.in_process import config_of


def rehearsed(folder: Path, kept: KeepsSockets = KEEPS_NONE, **options: Any) -> None:
    asyncio.run(rehearse(config_of(folder, **options), kept))


def unix(path: Path) -> Address:
    return Address("unix", path=str(path))


def test_two_new_listeners_at_one_address_are_refused(tmp_path: Path) -> None:
    port = free_port()
    at = Address("http", "127.0.0.1", port)
    with pytest.raises(StartError, match=str(port)):
        rehearsed(tmp_path, inference_address=at, grpc_management_port=port)
    with pytest.raises(StartError, match=str(port)):
        rehearsed(tmp_path, grpc_inference_port=port, grpc_management_port=port)
    rehearsed(tmp_path, inference_address=at)


@pytest.mark.parametrize("is_file", [False, True])
def test_a_path_that_cannot_be_a_socket_is_refused(tmp_path: Path, is_file: bool) -> None:
    path = tmp_path / "file" if is_file else tmp_path / "none" / "socket"
    if is_file:
        path.touch()
    with pytest.raises(StartError, match=str(path)):
        rehearsed(tmp_path, management_address=unix(path))


def test_nothing_is_left_of_a_path(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    rehearsed(tmp_path, inference_address=unix(path))
    assert not path.exists()


class Holds(KeepsNone):
    """Another frontend has this socket."""

    def __init__(self, name: str, held: socket.socket) -> None:
        self._name, self._held = name, held

    def find(self, name: str) -> list[socket.socket]:
        return [self._held.dup()] if name == self._name else []


def test_the_path_of_the_other_frontend_stays(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as held, socket.socket(socket.AF_UNIX) as client:
        held.bind(str(path))
        held.listen()
        rehearsed(tmp_path, Holds(kept_name("inference", unix(path)), held), inference_address=unix(path))
        client.connect(str(path))
