"""How an async handler on rank 0 leads the other ranks of its group."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import TracebackType


class Leading:
    """Result of `context.lead(message)`: the other ranks follow the message, and `with` it rank 0 does its share.

    A handler that has several messages on their way, such as to the stages of a pipeline, does its share of each in
    parts (`with leading.part():`), then calls `end`, in the order of the messages. A model of one rank leads no others.
    """

    def part(self) -> AbstractContextManager[None]:
        """A part of rank 0's share. The collectives that run within it count for this message."""
        return nullcontext()

    def end(self, error: BaseException | None = None) -> None:
        """Rank 0's share is done, or has failed."""

    def __enter__(self) -> Leading:
        self._whole = self.part()
        self._whole.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._whole.__exit__(kind, error, trace)
        self.end(error)
