"""Server as plugins see it, from any thread."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msx_frontend.apis.plugins.view import View
from msx_frontend.config import ServerConfig
from msx_sdk.plugins import ModelView, WorkerView
from tests.frontend.harness import Harness, in_harness


def test_models_on_the_loop_and_from_a_thread(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        view = View(ServerConfig(), harness.registry)
        assert view.models() == []
        await harness.register()
        expected = ModelView("m", "1.0", "m.mar", True, "READY", 1, 1, 1, [WorkerView("9000", "READY", 4711)])
        found = view.models()
        expected.workers[0] = WorkerView(found[0].workers[0].id, "READY", 4711)
        assert found == [expected]
        assert await asyncio.to_thread(view.models) == [expected]

    in_harness(tmp_path, test)
