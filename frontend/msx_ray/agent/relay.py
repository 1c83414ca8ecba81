"""Two connections whose bytes are passed on from one to the other: a rank's own, and the one over the network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast


class Relay(asyncio.Protocol):
    """One side. The end of one is the end of the other, after what was read has been written."""

    def __init__(self, on_lost: Callable[[], None] = lambda: None) -> None:
        self._on_lost = on_lost
        self._other: Relay | None = None
        self._transport: asyncio.Transport | None = None
        self._waiting: list[bytes] = []
        self._ended = False

    @classmethod
    def pair(cls, on_lost: Callable[[], None] = lambda: None) -> tuple[Relay, Relay]:
        """`on_lost` is called when the second one, the network's, has ended."""
        near, far = cls(), cls(on_lost)
        near._other, far._other = far, near
        return near, far

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            self._transport.write(data)
        if self._ended:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        assert self._other is not None
        self._other.write(data)

    def write(self, data: bytes) -> None:
        if self._transport is None:
            self._waiting.append(data)
        else:
            self._transport.write(data)

    def end(self) -> None:
        self._ended = True
        if self._transport is not None:
            self._transport.close()

    def pause_writing(self) -> None:
        if self._other is not None and self._other._transport is not None:
            self._other._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None and self._other._transport is not None:
            self._other._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._other is not None:
            self._other.end()
        self._on_lost()
