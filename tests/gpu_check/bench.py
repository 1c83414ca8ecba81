"""The server of one run of `scripts/gpu-check`, and what is known of this machine."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.server import RunningServer
from tests.gpu_check.cards import Cards
from tests.gpu_check.page import FailedError, NotRunError

TIMES = 20
"""Requests of which the median is told."""
SIMULATED = "accelerator=nvidia\nsimulate_devices=2\n"
"""Lines of config.properties for two GPUs that exist only as numbers."""


@dataclass
class Bench:
    server: RunningServer
    cards: Cards | None
    """None where GPUs are simulated, and torch computes on the CPU."""
    gpu: str = ""
    """Name of the server's first GPU, a UUID unless it is simulated, once a worker has said it."""

    @property
    def folder(self) -> Path:
        """Files that archives are made of."""
        return self.server.folder

    @property
    def device(self) -> str:
        """torch's name of the place where workers have to compute."""
        return "cuda:0" if self.cards else "cpu"

    def register(self, archive: Path, workers: int = 1) -> float:
        """Seconds until the model serves."""
        began = time.monotonic()
        reply = self.server.register(archive, initial_workers=workers, synchronous="true")
        if reply.status_code != 200:
            raise FailedError(f"{archive.name} does not load: {reply.text}")
        return time.monotonic() - began

    def unregister(self, model: str) -> None:
        self.server.management.delete(f"/models/{model}").raise_for_status()

    def ask(self, model: str, body: Any) -> dict[str, Any]:
        reply = self.server.predict(model, body)
        if reply.status_code != 200:
            raise FailedError(f"{model} answers {reply.status_code}: {reply.text}")
        answer: dict[str, Any] = json.loads(reply.content)
        return answer

    def milliseconds(self, model: str, body: Any) -> float:
        """The median of some requests, one after the other."""
        return statistics.median(self._seconds(model, body)) * 1000

    def used(self) -> int:
        """MiB that are used of the first GPU. Raises NotRunError where there is none."""
        if self.cards is None:
            raise NotRunError("simulated GPUs have no memory")
        if not self.gpu:
            raise NotRunError("no worker has said which GPU it has")
        return self.cards.used(self.gpu)

    def _seconds(self, model: str, body: Any) -> Iterator[float]:
        for _ in range(TIMES):
            began = time.perf_counter()
            self.ask(model, body)
            yield time.perf_counter() - began
