"""Replies to pings of a worker that has not loaded its model yet."""

from __future__ import annotations

import socket
import sys
from types import ModuleType

import pytest

from msx_backend.parallel.reports import COLLECTIVES
from msx_backend.pinged import PingedWorker
from msx_backend.replies import ReplyWriter
from msx_protocol import Pong


def test_a_module_that_is_half_imported_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, COLLECTIVES, ModuleType(COLLECTIVES))
    near, far = socket.socketpair()
    with near, far:
        pinged = PingedWorker(ReplyWriter(near, 1000), None, parallel=True)
        assert pinged.pong(3, 0.5) == Pong(3, 0, 0.5, [])
