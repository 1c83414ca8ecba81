"""Requests to a stateful model that belong together: the server brings them to one worker, in their order."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msx_client.http.calls import HttpCalls


class _Started:
    """Makes the calls of one sequence, whose id is chosen here."""

    def __init__(self, calls: HttpCalls, model: str, version: str | None) -> None:
        self.id = f"msx-{os.urandom(12).hex()}"
        self._calls, self._model, self._version = calls, model, version
        self._first = True
        self.ended = False

    def call(self, data: Any, last: bool) -> Any:
        """Raises ValueError after the last one."""
        if self.ended:
            raise ValueError(f"The sequence {self.id} has ended: begin another one.")
        call = self._calls.in_sequence(self._model, data, self._version, self.id, self._first, last)
        self._first, self.ended = False, last
        return call


class RequestSequence(_Started):
    """Call one after the other. Raises MsxError."""

    def __init__(
        self, run: Callable[[Any, float | None], Any], calls: HttpCalls, model: str, version: str | None
    ) -> None:
        super().__init__(calls, model, version)
        self._run = run

    def predict(self, data: Any = b"", *, last: bool = False, timeout: float | None = None) -> Any:
        """`last`: it ends the sequence, as the server's time limits do otherwise."""
        return self._run(self.call(data, last), timeout)


class AsyncRequestSequence(_Started):
    """Await one after the other. Raises MsxError."""

    def __init__(
        self, run: Callable[[Any, float | None], Awaitable[Any]], calls: HttpCalls, model: str, version: str | None
    ) -> None:
        super().__init__(calls, model, version)
        self._run = run

    async def predict(self, data: Any = b"", *, last: bool = False, timeout: float | None = None) -> Any:
        """`last`: it ends the sequence, as the server's time limits do otherwise."""
        return await self._run(self.call(data, last), timeout)
