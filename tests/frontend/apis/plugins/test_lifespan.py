"""Tasks, timers and processes that a lifespan could leave behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from msx_frontend.apis.plugins.lifespan import Lifespan
from tests.loops import run


async def never_starts(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.Event().wait()


async def starts(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


@pytest.mark.parametrize("app", [never_starts, starts])
def test_no_timer_outlives_its_end(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> list[asyncio.TimerHandle]:
        loop, made = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
        call_later = loop.call_later

        def noted(delay: float, *call: Any, **options: Any) -> asyncio.TimerHandle:
            made.append(call_later(delay, *call, **options))
            return made[-1]

        monkeypatch.setattr(loop, "call_later", noted)
        lifespan = Lifespan(app, "it", 1000.0, 100.0)
        lifespan.start()
        await asyncio.sleep(0)
        await lifespan.stop()
        return made

    made = run(test())
    assert made
    assert all(timer.cancelled() for timer in made)
