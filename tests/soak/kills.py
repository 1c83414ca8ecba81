"""Kills of workers while clients go on; and of the frontend, in turn with upgrades."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import os
import random
import signal
from collections.abc import Collection

import httpx

from tests.e2e.server import RunningServer
from tests.e2e.test_supervisor import crash
from tests.e2e.test_upgrade import upgrade

KILL_EVERY, REPLACE_EVERY = 20.0, 15.0
"""Seconds; a crash loop backs off, but is forgotten after ten."""


async def kill_workers(server: RunningServer, models: Collection[str]) -> None:
    """SIGKILL of a worker of one model or another."""
    while True:
        await asyncio.sleep(KILL_EVERY)
        with contextlib.suppress(httpx.TransportError):  # of a frontend that has just been killed
            for pid in await asyncio.to_thread(server.worker_pids, random.choice([*models])):
                os.kill(pid, signal.SIGKILL)


class Replacements:
    """The frontend is followed by another one, again and again."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self.done = collections.Counter[str]()
        self.faults: list[str] = []

    async def run(self) -> None:
        for replace in itertools.cycle((self._upgrade, self._crash)):
            await asyncio.sleep(REPLACE_EVERY)
            await asyncio.to_thread(replace)

    def _upgrade(self) -> None:
        done = upgrade(self._server)
        self.done["upgrades"] += 1
        if done.returncode:
            self.faults.append(f"an upgrade has failed: {done.stderr.strip()}")

    def _crash(self) -> None:
        crash(self._server)
        self.done["kills of the frontend"] += 1
