"""A batch that runs beside a load, through the API of files and batches."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import httpx

from benchmarks.servers.msx import Server

PATIENCE = 60.0
"""Seconds until the first line is answered."""


class Backlog:
    """A batch that was made. `per_second`: lines that were answered since the last call."""

    def __init__(self, client: httpx.Client, id: str) -> None:
        self._client, self._id = client, id
        self._last = self._look(), time.monotonic()

    def wait_until_it_runs(self) -> None:
        """Raises click.ClickException."""
        deadline = time.monotonic() + PATIENCE
        while not self._look():
            if time.monotonic() > deadline:
                raise click.ClickException(f"No line was answered within {PATIENCE:g} s.")
            time.sleep(0.05)
        self._last = self._look(), time.monotonic()

    def per_second(self) -> float:
        """Raises click.ClickException where the batch has ended: it was not beside all of the load."""
        (count, at), (now, instant) = self._last, (self._look(), time.monotonic())
        self._last = now, instant
        if self._batch()["status"] != "in_progress":
            raise click.ClickException("The batch ended before the live requests: it was not beside them.")
        return (now - count) / (instant - at)

    def _look(self) -> int:
        return int(self._batch()["request_counts"]["completed"])

    def _batch(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get(f"/v1/batches/{self._id}").raise_for_status().json()
        return found

    def cancel(self) -> None:
        self._client.post(f"/v1/batches/{self._id}/cancel").raise_for_status()
        while self._batch()["status"] != "cancelled":
            time.sleep(0.05)


@contextmanager
def backlog(server: Server, path: str, body: dict[str, Any], lines: int) -> Iterator[Backlog]:
    """So many lines with this body, which are cancelled at the end."""
    rows = ({"custom_id": str(number), "method": "POST", "url": path, "body": body} for number in range(lines))
    content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    with httpx.Client(base_url=server.address.url, timeout=60) as client:
        sent = client.post("/v1/files", data={"purpose": "batch"}, files={"file": ("in.jsonl", content)})
        asked = {"input_file_id": sent.raise_for_status().json()["id"], "endpoint": path, "completion_window": "24h"}
        found = Backlog(client, client.post("/v1/batches", json=asked).raise_for_status().json()["id"])
        try:
            found.wait_until_it_runs()
            yield found
        finally:
            found.cancel()
