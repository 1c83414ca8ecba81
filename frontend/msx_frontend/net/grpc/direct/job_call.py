"""A unary call that is one job: the events of its stream submit it, and its answer is written where it arrives."""

from __future__ import annotations

import logging

from msx_frontend.errors import ServiceError
from msx_frontend.held_bytes import UNCOUNTED
from msx_frontend.ids import new_request_id
from msx_frontend.job import Job
from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.context import REQUEST_ID
from msx_frontend.net.grpc.direct.blocks import HEAD, ok_trailers
from msx_frontend.net.grpc.direct.call import DirectCall
from msx_frontend.net.grpc.direct.calls import Calls
from msx_frontend.net.grpc.direct.framing import PREFIX, MessageReader, framed
from msx_frontend.net.grpc.direct.head import CallHead
from msx_frontend.net.grpc.direct.refused import Refused
from msx_frontend.net.grpc.direct.requests import not_one, parsed
from msx_frontend.net.grpc.direct.served import ServedMethod
from msx_frontend.net.grpc.service import JobMethod
from msx_frontend.net.grpc.whole_answer import ResponseTooLarge
from msx_frontend.net.http2.stream import Stream

log = logging.getLogger("msx.grpc")


class JobCall(DirectCall):
    """The sink of its job: no task, future or buffer stands between the worker's answer and the client's stream."""

    __slots__ = ("_chunks", "_held", "_job", "_method", "_reader", "_request", "_size")

    def __init__(
        self, calls: Calls, stream: Stream, head: CallHead, served: ServedMethod, client: str, method: JobMethod
    ) -> None:
        super().__init__(calls, stream, head, served, client)
        self.id = head.given_id or new_request_id()
        self._method = method
        self._request: bytes | None = None
        self._reader: MessageReader | None = None
        self._job: Job | None = None
        self._chunks: list[bytes] = []
        self._size = self._held = 0

    # -- the request --

    def data(self, data: bytes) -> None:
        self._held += len(data)
        if self._held >= UNCOUNTED and not self.over:
            self._holds(self._held)
        if self.over:
            return
        if (
            self._reader is None
            and self._request is None
            and _is_whole(data)
            and len(data) - PREFIX <= self._calls.limit
        ):
            self._request = data[PREFIX:]
        else:
            self._read(data)

    def _read(self, data: bytes) -> None:
        """What has come in pieces, or is no message."""
        if self._reader is None:
            self._reader = MessageReader(self._calls.limit)
        try:
            for received in self._reader.feed(data):
                if self._request is not None:
                    raise not_one("more")
                if received.compressed:
                    raise Refused(
                        Code.INTERNAL, "A message is marked as compressed, but the call has no grpc-encoding."
                    )
                self._request = received.data
        except Refused as refused:
            self.refuse(refused)

    def ended(self) -> None:
        self._stream.consumed(self._held)
        if self.over:
            return
        try:
            self._submit()
        except ServiceError as error:
            self.fail(error)
        except Refused as refused:
            self.refuse(refused)
        except Exception as error:
            log.exception("a bug of the server", extra={"request_id": self.id})
            self.refuse(Refused(Code.UNKNOWN, f"Unexpected {type(error)}: {error}"))

    def _submit(self) -> None:
        if self._reader is not None and self._reader.partial:
            raise Refused(Code.INTERNAL, "The request ends in the middle of a message.")
        if self._request is None:
            raise not_one("none")
        method = self._method
        key = method.admission.check(self.head.authorization)
        if key is not None:
            self.key_name = key.name
            key.take()
        request, self._request = parsed(self.served.method.parse, self._request), None
        if key is not None and key.models is not None and request.model_name:
            key.check_model(request.model_name)
        if self._timer is not None:
            self._timer.cancel()  # from now on the job has the deadline
        job = method.submit(request, self.id, self.deadline, self)
        if not self.over:
            self._job = job

    def drained(self) -> None:
        """Nobody waits for it: the answer is sent as one."""

    # -- the answer: Sink --

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        """The status that a handler sets does not exist in gRPC."""

    def chunk(self, data: bytes) -> None:
        if not self.over:
            self._chunks.append(data)
            self._size += len(data)
            if self._size > self._method.limit:
                self.fail(ResponseTooLarge(self._method.limit))

    def end(self) -> None:
        self.answer(200, "", [], b"".join(self._chunks))

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        if self.over:
            return
        method = self._method
        if len(data) > method.limit:
            self.fail(ResponseTooLarge(method.limit))
            return
        message = self.served.method.serialize(method.response(data))
        self._stream.send_whole(HEAD, framed(message), ok_trailers(self.id))
        self._job = None
        self._end(Code.OK)

    def _stop(self) -> None:
        self._request = self._reader = None
        job, self._job = self._job, None  # ends the reference cycle of the two
        if job is not None:
            job.cancel()

    def _metadata(self) -> list[tuple[str, str]]:
        return [(REQUEST_ID, self.id)]


def _is_whole(data: bytes) -> bool:
    """This piece is one message that is not compressed."""
    return len(data) >= PREFIX and not data[0] and int.from_bytes(data[1:PREFIX], "big") == len(data) - PREFIX
