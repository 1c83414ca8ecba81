"""Jobs of a server that have not ended, as its metrics tell them."""

from __future__ import annotations

import re
import time
import urllib.request
from pathlib import Path

import click

from benchmarks.servers.msx import Server

PATIENCE = 600.0
"""Seconds until a backlog has to be empty."""
SAMPLE = re.compile(r'^(msx_jobs(?:_ended_total)?)\{state="\w+",?\} (\S+)$', re.MULTILINE)


class Backlog:
    def __init__(self, server: Server) -> None:
        self._server = server
        self.ended = 0
        """Jobs that had ended at the last look."""

    @property
    def is_empty(self) -> bool:
        return self._look() == 0

    @property
    def size(self) -> int:
        """Bytes of the store's files."""
        folder = Path(self._server.info["state_dir"])
        return sum(file.stat().st_size for file in folder.glob("store.db*") if not file.name.endswith("-shm"))

    def wait_until_empty(self) -> None:
        """Raises click.ClickException."""
        deadline = time.monotonic() + PATIENCE
        while self._look():
            if time.monotonic() > deadline:
                raise click.ClickException(f"Jobs have not ended within {PATIENCE:g} s.")
            time.sleep(0.05)

    def _look(self) -> int:
        with urllib.request.urlopen(f"{self._server.info['metrics']}/metrics", timeout=10) as reply:
            found = SAMPLE.findall(reply.read().decode())
        self.ended = round(sum(float(value) for name, value in found if name == "msx_jobs_ended_total"))
        return round(sum(float(value) for name, value in found if name == "msx_jobs"))
