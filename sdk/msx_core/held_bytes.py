"""Counts the bytes of requests that the server holds: from reading them until the request is answered."""

from __future__ import annotations

from msx_core.service_errors import Overloaded, PayloadTooLarge, ServiceError

UNCOUNTED = 4096
"""Bytes: smaller bodies are not refused. The rest of a request is larger, and `jobQueueSize` limits their number."""

HOLD = "msx.hold"
"""The key of the Hold in the ASGI scope of a request."""


PUBLIC = 16 << 20
"""Bytes of all requests together that need no key: they are counted apart, and take no room of those with keys."""


class HeldBytes:
    """The bytes of all listeners together: at most `limit` (the key max_queued_bytes)."""

    __slots__ = ("held", "limit", "public")

    def __init__(self, limit: int = 1 << 62, *, public: bool = False) -> None:
        self.limit, self.held = limit, 0
        self.public: HeldBytes = self if public else HeldBytes(PUBLIC, public=True)
        """Bytes of probes and other requests that anybody may send."""

    def hold(self, size: int = 0) -> Hold:
        """Hold the bytes of one request. Raises the errors of `Hold.resize`; nothing is held then."""
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

    def count_in(self, every: HeldBytes) -> None:
        """Count in another sum, before anything is held."""
        self._all = every

    def resize(self, size: int, times: int = 1) -> None:
        """Hold `size` bytes of the request from now on. Raises Overloaded above `times` the limit, or
        PayloadTooLarge for a request that is larger than the limit; the caller releases them then."""
        every = self._all
        every.held += size - self.size
        grown, self.size = size > self.size, size
        if grown and every.held > every.limit * times and size >= UNCOUNTED:
            raise self._refusal()

    def release(self) -> None:
        """Release the bytes; idempotent."""
        self._all.held -= self.size
        self.size = 0

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self.release()

    def _refusal(self) -> Overloaded | PayloadTooLarge:
        every = self._all
        if every.public is every:
            return Overloaded(
                f"The requests that need no key have {every.held} bytes, more than {every.limit}: ask again later, "
                "or without a body."
            )
        if self.size > every.limit:
            return PayloadTooLarge(f"The request is larger than max_queued_bytes ({every.limit} bytes).")
        return Overloaded(
            f"The requests that wait or run have {every.held} bytes, more than max_queued_bytes ({every.limit}): ask "
            "again later, or raise it in config.properties."
        )
