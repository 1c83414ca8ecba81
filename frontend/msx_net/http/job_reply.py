"""The way from the body of a request to its job, and from what the job says to the request's reply."""

from __future__ import annotations

from msx_core.service_errors import ServiceError
from msx_net.http.failures import reported
from msx_net.http.family import JobTemplate, ReplySink


def begin(template: JobTemplate, id: str, body: bytes, sink: ReplySink) -> None:
    """The one way from a request to a job. `sink` is told of each failure, a bug of the server too."""
    try:
        template.submit(id, body, sink)
    except Exception as error:
        sink.fail(reported(error, id))


class TranslatedReply:
    """The sink of a job whose reply has another form for its client: it collects the chunks and
    hands the reply on whole.

    `translate` is the subclass's. A client is told of what `translate` raises.
    """

    __slots__ = ("_chunks", "_head", "_over", "_size", "id", "limit", "sink")

    def __init__(self, id: str, sink: ReplySink, limit: int) -> None:
        """`limit`: bytes of a reply that comes in several chunks (the key max_response_size)."""
        self.id, self.sink, self.limit = id, sink, limit
        self._head: tuple[int, str, list[tuple[str, str]]] = (200, "", [])
        self._chunks: list[bytes] = []
        self._size = 0
        self._over = False

    def translate(self, status: int, phrase: str, headers: list[tuple[str, str]], chunks: list[bytes]) -> None:
        """Give the reply to `sink.answer`. `chunks` are those that the worker sent."""
        raise NotImplementedError

    def chunk_added(self, status: int, chunks: list[bytes]) -> None:
        """One more chunk has come, and the reply may go on. Raises ServiceError to end it."""

    # -- Sink --

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self._head = status, phrase, headers

    def chunk(self, data: bytes) -> None:
        if self._over:
            return
        self._chunks.append(data)
        self._size += len(data)
        try:
            if len(self._chunks) > 1 and self._size > self.limit:
                raise ReplyTooLarge(self.limit)
            self.chunk_added(self._head[0], self._chunks)
        except Exception as error:
            self.fail(reported(error, self.id))

    def end(self) -> None:
        self._translate(*self._head, self._chunks)

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self._translate(status, phrase, headers, [data] if data else [])

    def fail(self, error: ServiceError) -> None:
        if not self._over:
            self._over, self._chunks = True, []
            self.sink.fail(error)

    def _translate(self, status: int, phrase: str, headers: list[tuple[str, str]], chunks: list[bytes]) -> None:
        if self._over:
            return
        try:
            self.translate(status, phrase, headers, chunks)
        except Exception as error:
            self.sink.fail(reported(error, self.id))
        self._over = True


class ReplyTooLarge(ServiceError):
    """`limit` is in bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The answer has more than max_response_size ({limit} bytes): raise it in config.properties, or send the "
            "request to /predictions, whose answers may be streams."
        )
