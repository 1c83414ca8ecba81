"""Heartbeats of streams whose time is the test's."""

from __future__ import annotations

import asyncio

from msx_core.replies.stream_heartbeat import COMMENT as COMMENT
from msx_net.heartbeats import StreamHeartbeats


class Silence(StreamHeartbeats):
    """Its streams are silent for 15 seconds whenever the test says so."""

    def __init__(self) -> None:
        super().__init__(15.0)
        self._passed = 0.0

    @property
    def count(self) -> int:
        """Streams that are looked at."""
        return len(self._open)

    def passes(self) -> None:
        """Note what was sent before, then let 15 seconds go by."""
        now = asyncio.get_running_loop().time() + self._passed
        for seconds in (0.0, 15.0):
            for one in self._all():
                one.look(now + seconds)
        self._passed += 15.0
