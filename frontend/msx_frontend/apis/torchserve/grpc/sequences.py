"""StreamPredictions2: the requests of one call, which sequence they belong to, and their answers in order."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from msx_core.replies.reply_buffer import ReplyBuffer
from msx_core.request_ids import new_request_id
from msx_core.sequences import SequenceKeys
from msx_core.service_errors import ServiceError

MOST_AHEAD = 64
"""Requests of one call that wait for their answers to be sent; then no more are read from the client."""


class SequenceNamer:
    """Which sequence the requests of one call belong to: that of their field, else the one before.

    A first request without one, or one that says start, begins a sequence that the server names (TorchServe's form).
    TorchServe takes the marks of start and end from the inputs.
    """

    def __init__(self, keys: SequenceKeys) -> None:
        self._keys = keys
        self._id = ""

    def headers(self, request: Any) -> tuple[str, list[tuple[str, str]]]:
        """The id, and the headers of the request's job."""
        start, end = (_says_yes(request.input, key) for key in (self._keys.start, self._keys.end))
        if request.sequence_id:
            self._id = request.sequence_id
        elif start or not self._id:
            self._id, start = f"ts-seq-{new_request_id()}", True
        id = self._id
        if end:
            self._id = ""
        marks = [(key, "true") for key, said in ((self._keys.start, start), (self._keys.end, end)) if said]
        return id, [(self._keys.id, id), *marks]


def _says_yes(inputs: Any, key: str) -> bool:
    value: bytes = inputs.get(key, b"")
    return value.strip().lower() == b"true"


@dataclass
class SequenceRequest:
    """One request of the call: its sequence, and its answer to be, or why there is none."""

    id: str
    outcome: ReplyBuffer | ServiceError

    def reply(self) -> ReplyBuffer:
        """Raises ServiceError."""
        if isinstance(self.outcome, ServiceError):
            raise self.outcome
        return self.outcome

    async def name(self, header: str) -> str:
        """The sequence as the handler calls it, by this header of its answer, else as it was asked for."""
        head = await self.reply().head()
        return next((value for name, value in head.headers if name.lower() == header.lower()), self.id)

    def close(self) -> None:
        if isinstance(self.outcome, ReplyBuffer):
            self.outcome.close()


async def answers_in_order(
    requests: AsyncIterator[Any], ask: Callable[[Any, int], SequenceRequest]
) -> AsyncGenerator[SequenceRequest, None]:
    """Yield the result of `ask` for each request as it comes, with its number; the caller closes each that it takes.

    At the end, also when the client has left, the jobs of all that were not taken are cancelled.
    """
    queue: asyncio.Queue[SequenceRequest | None] = asyncio.Queue(MOST_AHEAD)
    reader = asyncio.ensure_future(_read(requests, ask, queue))
    try:
        while (asked := await queue.get()) is not None:
            yield asked
        await reader
    finally:
        reader.cancel()
        while not queue.empty():
            if (left := queue.get_nowait()) is not None:
                left.close()


async def _read(
    requests: AsyncIterator[Any],
    ask: Callable[[Any, int], SequenceRequest],
    queue: asyncio.Queue[SequenceRequest | None],
) -> None:
    number = 0
    try:
        async for request in requests:
            number += 1
            asked = ask(request, number)
            try:
                await queue.put(asked)
            except asyncio.CancelledError:
                asked.close()
                raise
    finally:
        await queue.put(None)
