"""Events of a stream, for its owner."""

from typing import Protocol


class StreamEvents(Protocol):
    """Events of a stream, for its owner: none after `lost`, nor after the owner said the last of its answer."""

    def data(self, data: bytes) -> None:
        """A piece of the body, never empty. `stream.consumed(len(data))` when it is held no longer."""

    def ended(self) -> None:
        """The client has said all. Not called for a request that had no body: `accept` was told."""

    def lost(self, reason: str) -> None:
        """The client gave the request up, or its connection is gone: nothing can be sent. At most once."""

    def drained(self) -> None:
        """All that had been `blocked` has left for the transport."""

    def too_slow(self, reason: str) -> None:
        """The body comes too slowly: the owner ends the stream, or waits on. It is told again about once a second."""
