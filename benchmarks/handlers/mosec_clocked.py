"""The steps of clocked.py as three stages of mosec."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from device_clock import DeviceClock  # type: ignore[import-not-found]
from mosec import Server, Worker  # type: ignore[import-not-found]

CLOCK = "DEVICE_CLOCK"
"""The variable that tells each stage's process `device` and `python`, as JSON."""


class Step(Worker):  # type: ignore[misc]
    def __init__(self) -> None:
        self.clock = DeviceClock(**json.loads(os.environ[CLOCK]))

    def deserialize(self, data: bytes) -> bytes:
        return data

    def serialize(self, data: bytes) -> bytes:
        return data


class Compute(Step):
    def forward(self, data: Sequence[bytes]) -> Sequence[bytes]:
        self.clock.compute()
        return data


class Call(Step):
    def forward(self, data: Sequence[bytes]) -> Sequence[bytes]:
        return self.clock.run(data)  # type: ignore[no-any-return]


def serve(device: float, python: float, batch: int, wait: int) -> None:
    """`device` and `python` are in ms, as is `wait`, for a batch to fill."""
    os.environ[CLOCK] = json.dumps({"device": device, "python": python})
    server = Server()
    for step in (Compute, Call, Compute):
        server.append_worker(step, max_batch_size=batch, max_wait_time=wait)
    server.run()
