"""A process that has the same model and runs commands."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

LIMIT = 180.0
"""Seconds: the limit for a command, and for the load."""
ROOT = Path(__file__).parents[2]


class Peer:
    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.name, self._process, self._log = name, process, log

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a command. Raises click.ClickException with the end of its output if there is none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], LIMIT)[0]:
            raise click.ClickException(f"{self.name} did not answer to {do} within {LIMIT:g} s.{self._last_words()}")
        line = self._process.stdout.readline()
        if not line:
            self._process.wait(LIMIT)  # its last words come after its last answer
            raise click.ClickException(f"{self.name} failed at {do}.{self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        return "\n" + self._log.read_text(errors="replace")[-2000:]


@contextlib.contextmanager
def peer(name: str, python: Path, *arguments: str) -> Iterator[Peer]:
    """Starts that Python with these arguments; the program takes commands as benchmarks/llm/orders.py reads them."""
    with tempfile.TemporaryDirectory(prefix="msx-benchmark-") as folder:
        log = Path(folder, "log")
        with log.open("w") as errors:
            process = subprocess.Popen(
                [str(python), *arguments],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        try:
            yield Peer(name, process, log)
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()  # it holds nothing that would have to be put in order
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
    process.wait()
