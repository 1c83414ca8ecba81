"""A server whose workers answer as they are told, and two GPUs, for tests of the checks."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from tests.gpu_check.bench import Bench

UUIDS = ["GPU-5a1b0c9e-7d52-4a6b-93f7-2b8f6a1e0c11", "GPU-0f6e2c44-91aa-4d0e-8a57-6c1d3b2e9f70"]
RIGHT = {"device": "cuda:0", "gpu_id": 0, "visible": UUIDS[0], "gpus": 1, "pid": 11, "output": [0.5]}


class FakeCards:
    """`used` are MiB of the first GPU, one reading after the other; the last one stays."""

    def __init__(self, *used: int, count: int = 2) -> None:
        self._used, self.count = list(used) or [0], count

    def used(self, uuid: str) -> int:
        assert uuid == UUIDS[0]
        return self._used.pop(0) if len(self._used) > 1 else self._used[0]


class FakeServer:
    """`answers` come one after the other; the last one stays."""

    def __init__(self, *answers: dict[str, Any], described: dict[str, Any] | None = None) -> None:
        self._answers, self._described = list(answers), described or {}
        self.folder, self.killed = None, list[int]()
        self.management = SimpleNamespace(delete=lambda path: SimpleNamespace(raise_for_status=lambda: None))

    def register(self, archive: Any, **parameters: Any) -> Any:
        return SimpleNamespace(status_code=200)

    def predict(self, model: str, body: Any) -> Any:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return SimpleNamespace(status_code=200, content=json.dumps(answer), text="")

    def describe(self, model: str) -> dict[str, Any]:
        return self._described

    def worker_pids(self, model: str) -> list[int]:
        return [11, 12]

    def kill_worker(self, pid: int, model: str) -> None:
        self.killed.append(pid)


def bench(server: FakeServer, cards: FakeCards | None, gpu: str = "") -> Bench:
    """A bench on this server, with simulated GPUs where there are no cards."""
    made: Any = server
    found: Any = cards
    return Bench(made, found, gpu)
