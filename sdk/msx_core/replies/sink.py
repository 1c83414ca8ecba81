"""Where the reply of a job goes, and how its client gives the job up."""

from typing import Protocol

from msx_core.replies.stream_credit import StreamCredit
from msx_core.service_errors import ServiceError


class Sink(Protocol):
    """Where one job's reply goes: `start` once, `chunk` any number of times, then `end`; or all of it by `answer`;
    or `fail` at any point.

    Called on the loop's thread by the group's reader, which must never wait: no method blocks or raises.
    """

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None: ...

    def chunk(self, data: bytes) -> None: ...

    def end(self) -> None: ...

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None: ...

    def fail(self, error: ServiceError) -> None: ...


class Cancellable(Protocol):
    """A job, or several that end together."""

    @property
    def credit(self) -> StreamCredit | None:
        """Credit of one job whose reply is a stream, for who holds its chunks until its client takes them."""

    def cancel(self, error: ServiceError | None = None) -> None: ...
