"""How much memory of its own a process has had at most."""

import threading
from pathlib import Path
from typing import Any


def anonymous() -> int:
    """Bytes that are not the pages of a file."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:"))


class Peak:
    """A context manager that samples; `bytes` is the most above what there was at the start."""

    def __enter__(self) -> "Peak":
        self._start = self._most = anonymous()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(self, *ignored: Any) -> None:
        self._over.set()
        self._thread.join()
        self._most = max(self._most, anonymous())

    @property
    def bytes(self) -> int:
        return self._most - self._start

    def _sample(self) -> None:
        while not self._over.wait(0.005):
            self._most = max(self._most, anonymous())
