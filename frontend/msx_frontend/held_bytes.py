"""Bytes of requests that the server holds: from the moment that they are read until their request is answered."""

from __future__ import annotations

from msx_frontend.errors import Overloaded, PayloadTooLarge, ServiceError

UNCOUNTED = 4096
"""Bytes: a smaller body takes less than all else of its request, and `jobQueueSize` bounds how many there are."""

HOLD = "msx.hold"
"""Of the ASGI scopes of requests: their Hold."""


class HeldBytes:
    """Of all listeners together: at most `limit` (the key max_queued_bytes)."""

    __slots__ = ("held", "limit")

    def __init__(self, limit: int = 1 << 62) -> None:
        self.limit, self.held = limit, 0

    def hold(self, size: int = 0) -> Hold:
        """Of one request that has so many bytes now. Raises as `Hold.resize` does; then nothing is held."""
        hold = Hold(self)
        try:
            hold.resize(size)
        except ServiceError:
            hold.release()
            raise
        return hold


class Hold:
    __slots__ = ("_all", "size")

    def __init__(self, every: HeldBytes) -> None:
        self._all, self.size = every, 0

    def resize(self, size: int, times: int = 1) -> None:
        """So many bytes of the request are held now. Raises Overloaded, or PayloadTooLarge where it alone is too large;
        the caller releases them then. `times` the limit may be held before that."""
        every = self._all
        every.held += size - self.size
        grown, self.size = size > self.size, size
        if grown and every.held > every.limit * times and size >= UNCOUNTED:
            raise self._refusal()

    def release(self) -> None:
        """Idempotent."""
        self._all.held -= self.size
        self.size = 0

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self.release()

    def _refusal(self) -> Overloaded | PayloadTooLarge:
        every = self._all
        if self.size > every.limit:
            return PayloadTooLarge(f"The request is larger than max_queued_bytes ({every.limit} bytes).")
        return Overloaded(
            f"The requests that wait or run have {every.held} bytes, more than max_queued_bytes ({every.limit}): ask "
            "again later, or raise it in config.properties."
        )
