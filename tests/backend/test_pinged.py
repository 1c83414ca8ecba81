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
from msx_sdk.metrics import Metrics


def test_a_module_that_is_half_imported_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, COLLECTIVES, ModuleType(COLLECTIVES))
    near, far = socket.socketpair()
    with near, far:
        pinged = PingedWorker(ReplyWriter(near, 1000), None, parallel=True)
        assert pinged.pong(3, 0.5) == Pong(3, 0, 0.5, [])


def test_the_first_ping_of_a_frontend_brings_all_gauges() -> None:
    """Most handlers set them once, and another frontend goes on with the worker."""
    near, far = socket.socketpair()
    with near, far:
        pinged = PingedWorker(ReplyWriter(near, 1000), None, parallel=False)
        metrics = pinged.metrics = Metrics("m")
        metrics.gauge("weights").update(7)
        metrics.gauge("queue", labels=("of",)).update(1, of="a")
        metrics.counter("calls").update(1)

        def names(sequence: int) -> list[tuple[str, float]]:
            return [(one.name, one.value) for one in pinged.pong(sequence, 0.0).samples]

        assert names(1) == [("weights", 7), ("queue", 1), ("calls", 1)]
        metrics.gauge("queue", labels=("of",)).update(2, of="a")
        assert names(2) == [("queue", 2)]
        assert names(1) == [("weights", 7), ("queue", 2)]
