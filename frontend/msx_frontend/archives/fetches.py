"""How far the archives and models are that are being downloaded."""

from collections.abc import Iterator
from contextlib import contextmanager

from msx_archiver.sizes import human


class Fetch:
    def __init__(self, name: str, url: str) -> None:
        self.name, self.url = name, url
        self._done, self._size = 0, 0

    def come(self, done: int, size: int) -> None:
        """`size`: in all, or 0 where the source does not say it."""
        self._done, self._size = done, size

    @property
    def phase(self) -> str:
        if not self._done:
            return f"fetching {self.url}"
        whole = f" of {human(self._size)}" if self._size > self._done else ""
        return f"fetching {self.url}: {human(self._done)}{whole}"


class Fetches:
    """Fetches by the name that the model is to have, as far as it is known before its archive is."""

    def __init__(self) -> None:
        self._running: list[Fetch] = []

    @contextmanager
    def of(self, name: str, url: str) -> Iterator[Fetch]:
        fetch = Fetch(name, url)
        self._running.append(fetch)
        try:
            yield fetch
        finally:
            self._running.remove(fetch)

    def find(self, name: str) -> Fetch | None:
        return next((fetch for fetch in self._running if fetch.name == name), None)
