"""Orders that commands give the supervisor: an odd one is refused, and nobody waits for a slow one."""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_frontend.supervision import orders as module
from msx_frontend.supervision.orders import NO_ORDER, Command, Orders
from msx_frontend.supervision.succession import Succession
from msx_frontend.supervision.supervisor import FrontendSupervisor
from msx_frontend.supervision.upgrade import Upgrade
from msx_frontend.supervision.wire import HEAD, receive
from tests.descriptors import open_descriptors


class Upgrades(Succession):
    """Begins each upgrade that is ordered, and keeps it."""

    def __init__(self) -> None:
        self.begun: list[Upgrade] = []

    def refusal(self) -> str:
        return ""

    def begin_upgrade(self, command: Command | None, python: str | None, *, workers: bool) -> None:
        self.begun.append(Upgrade(python or sys.executable, ["--version"], {}, command, "REPORTS"))


class Door(FrontendSupervisor):
    """Takes orders, and nothing else."""

    def __init__(self, path: Path) -> None:
        self._succession = self.upgrades = Upgrades()
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.listen(100)
        self.orders = Orders(listening)
        self._address = str(path)

    def command(self, data: bytes = b"") -> socket.socket:
        """Connects, and sends so much."""
        command = socket.socket(socket.AF_UNIX)
        command.connect(self._address)
        command.sendall(data)
        return command

    def look(self) -> None:
        """Do what has come."""
        while ready := select.select(self.orders.watched, [], [], 0)[0]:
            for sock in ready:
                if (ordered := self.orders.readable(sock)) is not None:
                    self._begin_upgrade(*ordered)

    def order(self, text: bytes) -> str:
        """Why it is refused."""
        with self.command(HEAD.pack(len(text), 0) + text) as command:
            self.look()
            return refusal(command)


def refusal(command: socket.socket) -> str:
    return str(receive(command)[0]["refused"])


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    one = Door(tmp_path / "orders")
    yield one
    one.orders.close()


@pytest.mark.parametrize(
    "text",
    [b"[]", b"5", b"{", b"\xff", b"[" * 60_000, b'{"python": 5}', b'{"python": ["x"]}'],
    ids=["list", "number", "cut", "no text", "deep", "python number", "python list"],
)
def test_what_is_no_order_is_refused(door: Door, text: bytes) -> None:
    assert door.order(text) == NO_ORDER
    assert door.upgrades.begun == []


def test_what_is_too_large_is_refused_before_it_is_read(door: Door) -> None:
    for head in (HEAD.pack(module.LONGEST + 1, 0), HEAD.pack(2, 1)):
        with door.command(head) as command:
            door.look()
            assert refusal(command) == NO_ORDER


def test_an_order_may_come_byte_by_byte(door: Door) -> None:
    text = b'{"python": "\\u0000"}'
    with door.command() as command:
        for byte in HEAD.pack(len(text), 0) + text:
            command.sendall(bytes([byte]))
            door.look()
        assert "cannot be run" in refusal(command)


def test_nobody_waits_for_those_that_say_nothing(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many are listened to; others wait in the kernel until these are refused."""
    silent = [door.command(b"\0") for _ in range(module.MOST)]
    door.look()
    late = door.command(HEAD.pack(2, 0) + b"[]")
    door.look()
    assert len(door.orders.watched) == module.MOST
    assert door.orders.seconds_left
    later = time.monotonic() + module.LIMIT + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert door.orders.seconds_left == 0
    door.orders.refuse_slow()
    for command in silent:
        assert refusal(command) == "The order was not complete within 10 seconds."
        command.close()
    door.look()
    assert refusal(late) == NO_ORDER
    late.close()


def test_one_that_leaves_is_forgotten(door: Door) -> None:
    door.command().close()
    door.look()
    assert door.orders.watched == [door.orders.listening]


def test_the_end_is_told(door: Door) -> None:
    with door.command(b"\0") as command:
        door.look()
        door.orders.close()
        assert refusal(command) == "The server takes its orders elsewhere now: ask again."


@pytest.mark.parametrize("python", ["a\0b", "\ud800"])
def test_a_path_that_cannot_be_one_is_refused(door: Door, python: str) -> None:
    before = open_descriptors()
    assert "cannot be run" in door.order(json.dumps({"python": python}).encode())
    assert not open_descriptors() - before


def test_a_program_that_is_not_there_is_named(door: Door, tmp_path: Path) -> None:
    order = json.dumps({"python": str(tmp_path / "python")}).encode()
    assert door.order(order) == f"{tmp_path / 'python'} cannot be run: No such file or directory."
