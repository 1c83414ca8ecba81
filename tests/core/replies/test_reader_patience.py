"""The time of a slow reader goes on only while the server is not held up."""

from __future__ import annotations

import asyncio

from msx_core.replies.reader_patience import ReaderPatience
from tests.loops import run


def test_a_reader_is_not_late_while_the_server_is_held_up() -> None:
    async def test() -> None:
        over: list[bool] = []
        loop, patience = asyncio.get_running_loop(), ReaderPatience(1, lambda: over.append(True))
        for late, expected in ((25, []), (0, [True])):
            patience.cancel()
            patience._timer = loop.call_at(loop.time() - late, lambda: None)
            patience._waited(1, 1)
            assert over == expected
        patience.cancel()

    run(test())
