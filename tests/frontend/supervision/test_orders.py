"""Orders that commands give the supervisor: an odd one is refused, and ends nothing."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_frontend.supervision.succession import Succession
from msx_frontend.supervision.supervisor import FrontendSupervisor
from msx_frontend.supervision.upgrade import Upgrade
from msx_frontend.supervision.wire import receive


class Upgrades(Succession):
    """Begins each upgrade that is ordered, and keeps it."""

    def __init__(self) -> None:
        self.begun: list[Upgrade] = []

    def refusal(self) -> str:
        return ""

    def begin_upgrade(self, command: socket.socket | None, python: str | None, *, workers: bool) -> None:
        self.begun.append(Upgrade(python or sys.executable, ["--version"], {}, command, "REPORTS"))


class Door(FrontendSupervisor):
    """Takes orders, and nothing else."""

    def __init__(self, path: Path) -> None:
        self._succession = self.upgrades = Upgrades()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()

    def order(self, text: bytes) -> str:
        """Why it is refused."""
        with socket.socket(socket.AF_UNIX) as command:
            command.connect(self._listening.getsockname())
            command.sendall(struct.pack("!I", len(text)) + text)
            self._order(self._listening)
            return str(receive(command)[0]["refused"])

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    one = Door(tmp_path / "orders")
    yield one
    one.close()


@pytest.mark.parametrize(
    "text",
    [b"[]", b"5", b"{", b"\xff", b"[" * 100_000, b'{"python": 5}', b'{"python": ["x"]}'],
    ids=["list", "number", "cut", "no text", "deep", "python number", "python list"],
)
def test_what_is_no_order_is_refused(door: Door, text: bytes) -> None:
    assert door.order(text) == "This is no order of msx-serve upgrade."
    assert door.upgrades.begun == []


@pytest.mark.parametrize("python", ["a\0b", "\ud800"])
def test_a_path_that_cannot_be_one_is_refused(door: Door, python: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    assert "cannot be run" in door.order(json.dumps({"python": python}).encode())
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_program_that_is_not_there_is_named(door: Door, tmp_path: Path) -> None:
    order = json.dumps({"python": str(tmp_path / "python")}).encode()
    assert door.order(order) == f"{tmp_path / 'python'} cannot be run: No such file or directory."
