"""A load that runs as a program of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from benchmarks.load.result import Result

PATIENCE = 30.0
"""Seconds beyond the planned ones."""


class StartedLoad:
    """`read` makes the result of what the program wrote to its standard output and error, or raises."""

    def __init__(self, command: Sequence[str], seconds: float, read: Callable[[str, str], Result]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._seconds, self._read = seconds, read

    def result(self) -> Result:
        """Waits for the end. Raises click.ClickException when an answer was an error."""
        with self:
            return self._read(*self.process.communicate(timeout=self._seconds + PATIENCE))

    def __enter__(self) -> StartedLoad:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
