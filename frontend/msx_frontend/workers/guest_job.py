"""A job of a frontend before this one, which has its client."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msx_core.replies.stream_credit import StreamCredit
from msx_core.service_errors import HandlerFailed, ServiceError
from msx_frontend.job import Job
from msx_protocol import Chunk, Dropped, Failed, WireMessage, encode_frame_parts

Write = Callable[..., None]
Headers = Iterable[tuple[str, str]]


class GuestSink:
    """Sends the reply of a job back to the frontend of its client, as a worker does."""

    __slots__ = ("_number", "_write")

    def __init__(self, number: int, write: Write) -> None:
        self._number, self._write = number, write

    def _send(self, message: WireMessage, body: bytes = b"") -> None:
        self._write(*encode_frame_parts(message, [body]))

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self._send(Chunk(self._number, False, status, phrase, headers))

    def chunk(self, data: bytes) -> None:
        self._send(Chunk(self._number, False), data)

    def end(self) -> None:
        self._send(Chunk(self._number, True))

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self._send(Chunk(self._number, True, status, phrase, headers), data)

    def fail(self, error: ServiceError) -> None:
        code = error.code if isinstance(error, HandlerFailed) else ""
        self._send(Failed(self._number, error.status, error.message, "", code))

    def drop(self) -> None:
        self._send(Dropped(self._number))


class GuestJob(Job):
    """The frontend of its client has the request, counts it, and grants its credit."""

    def __init__(self, number: int, kind: str, sink: GuestSink, headers: Headers = ()) -> None:
        super().__init__("", "", None, [], [*headers], sink, kind=kind)
        self.number, self._guest = number, sink

    @property
    def credit(self) -> StreamCredit | None:
        return None

    @credit.setter
    def credit(self, credit: StreamCredit | None) -> None:
        return

    def drop(self) -> None:
        """The worker has dropped it, because it was cancelled."""
        if not self.done:
            self.done = True
            self._guest.drop()
