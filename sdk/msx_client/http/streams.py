"""Decoders of streams: pieces as they come, or server-sent events."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from msx_client.call import Reply
from msx_client.errors import ConnectionLostError, error_of
from msx_client.http.content import failure

T = TypeVar("T")
LARGEST_EVENT = 64 << 20
"""Bytes of one event: what is longer is not one."""


class Pieces:
    """Bytes, each piece as it comes."""

    def feed(self, data: bytes) -> list[bytes]:
        return [data] if data else []

    def end(self) -> None: ...


class Events(Generic[T]):
    """The JSON of `data:` lines, until `[DONE]`; an event `{"error": …}` is raised."""

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read = read
        self._rest = b""
        self._done = False

    def feed(self, data: bytes) -> Iterator[T]:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LARGEST_EVENT:
            raise ConnectionLostError(f"An event of the stream is longer than {LARGEST_EVENT >> 20} MiB.")
        for line in lines:
            if self._is_event(line):
                yield self._event(line[5:].strip())

    def end(self) -> None:
        """Raises ConnectionLostError when the stream ended before it said so."""
        if not self._done:
            raise ConnectionLostError("The stream ended before its last event.")

    def _is_event(self, line: bytes) -> bool:
        if not line.startswith(b"data:") or self._done:
            return False
        self._done = line[5:].strip() == b"[DONE]"
        return not self._done

    def _event(self, data: bytes) -> T:
        event = json.loads(data)
        if isinstance(event, dict) and event.get("error"):
            said = event["error"]
            error = failure(Reply(500, {}, data))
            code = said.get("code") if isinstance(said, dict) else None
            raise error_of(error.message, code if isinstance(code, int) else 500, error.kind)
        return self._read(event)
