"""Models of several ranks: their configs, and what their ranks have written down."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.server import RunningServer, client_of, new_store, pack_service, wait_until
from tests.lines import whole_lines

LAYOUTS = {
    "tp2": "parallelType: tp\nmsrun: {nproc-per-node: 2}\n",
    "pp2": "parallelType: pp\nmsrun: {nproc-per-node: 2}\n",
    "pptp4": "parallelType: pptp\nmsrun: {nproc-per-node: 4}\nparallel: {pipelineStages: 2, tensorParallel: 2}\n",
    "custom": "parallelType: custom\nparallelLevel: 2\n",
}
RANKS = {"tp2": 2, "pp2": 2, "pptp4": 4, "custom": 1}
INFORMED = {"tp2": 2, "pp2": 1, "pptp4": 2, "custom": 1}
"""The ranks below this one get the inputs."""


def long_but(values: Iterable[Any], *kept: Any) -> list[Any]:
    """The parameters of a test of which all but these are repetitions, and are left to the long lane."""
    return [value if value in kept else pytest.param(*_each(value), marks=pytest.mark.long) for value in values]


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class Recorder:
    """A model of tests/services/parallel_record.py, and the records of its ranks."""

    def __init__(self, folder: Path, layout: str, config: str = "", model: str = "") -> None:
        self.layout, self.model = layout, model or layout
        self.records = folder / f"records-{self.model}"
        self.gates = folder / f"gates-{self.model}"
        self.records.mkdir()
        self.gates.mkdir()
        config = f"{LAYOUTS[layout]}folder: {self.records}\n{config}"
        self.archive = pack_service("parallel_record", new_store(folder), model=self.model, config=config)

    def of_rank(self, rank: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in whole_lines(self.records / f"rank-{rank}")]

    def of_all(self) -> list[list[dict[str, Any]]]:
        return [self.of_rank(rank) for rank in range(RANKS[self.layout])]

    def open(self, *steps: int) -> None:
        for step in steps:
            (self.gates / str(step)).touch()

    def wait_for(self, **line: Any) -> None:
        """Until every rank has written a line with these members."""

        def written() -> bool:
            return all(any(line.items() <= one.items() for one in lines) for lines in self.of_all())

        wait_until(written, f"all ranks have written {line}", lambda: str(self.of_all()))


def fault_model(folder: Path, layout: str, config: str = "", model: str = "") -> Path:
    """A model of tests/services/parallel_faults.py."""
    return pack_service("parallel_faults", new_store(folder), model=model or layout, config=LAYOUTS[layout] + config)


def ask(server: RunningServer, model: str, content: bytes = b"x", **order: Any) -> tuple[int, str]:
    """Status and text; of an error its message."""
    with client_of(server.info["inference"], None) as client:
        reply = client.post(f"/predictions/{model}", content=content, headers=header(**order))
    return reply.status_code, reply.text if reply.status_code == 200 else reply.json()["message"]


def header(**order: Any) -> dict[str, str]:
    return {"x-order": json.dumps(order, default=str)}


def ranks(server: RunningServer, model: str) -> list[dict[str, Any]]:
    """Ranks of its first worker, as describe shows them."""
    workers = server.describe(model)["workers"]
    return list(workers[0].get("ranks", [])) if workers else []


def last_error(server: RunningServer, model: str) -> str:
    return str(server.describe(model)["workers"][0].get("lastError", ""))


def scale(server: RunningServer, model: str, least: int, most: int | None = None) -> httpx.Response:
    parameters: dict[str, str | int] = {
        "min_worker": least,
        "max_worker": least if most is None else most,
        "synchronous": "true",
    }
    return server.management.put(f"/models/{model}", params=parameters)
