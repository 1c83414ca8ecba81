"""A server that another frontend follows."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

from msx_frontend.assembly.handover import Handover
from msx_net.connections.connection import LEAVING


def test_workers_do_not_end_while_requests_may_be_on_their_way() -> None:
    """On connections that the server has kept: their clients would hear that the model has no worker."""

    async def test() -> None:
        server: Any = SimpleNamespace(models=SimpleNamespace(context=SimpleNamespace(monitoring=SimpleNamespace())))
        server.models.context.monitoring.metrics = None
        server.models.workflows = SimpleNamespace(registry=SimpleNamespace(busy=lambda: False))
        version: Any = SimpleNamespace(queue=SimpleNamespace(busy=True), source=SimpleNamespace(workflow=""))
        supervisor: Any = None
        handover = Handover(server, supervisor, 60.0)
        assert handover._is_busy(version)
        version.queue.busy = False
        assert handover._is_busy(version)
        handover._asked_until = time.monotonic() + LEAVING
        assert handover._is_busy(version)
        handover._asked_until = time.monotonic()
        assert not handover._is_busy(version)

    asyncio.run(test())
