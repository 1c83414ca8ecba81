"""Replies of the handler, on their way to the frontend."""

from __future__ import annotations

import socket
import threading

from msx_backend.protocol import (
    MAX_BODY,
    CallDone,
    Chunk,
    Dropped,
    Failed,
    Loaded,
    LoadFailed,
    LoadProgress,
    encode_frame,
)
from msx_sdk.errors import Failure, shortened
from msx_sdk.request import InferenceRequest
from msx_sdk.results import ReplyHead

MAX_TEXT = 1 << 20
"""Characters of a message that a handler chose."""


class ReplyWriter:
    """A `ReplySink` over the data socket. Handlers may send from any thread, so that writes take a lock."""

    def __init__(self, sock: socket.socket, max_response_size: int) -> None:
        self._sock = sock
        self._limit = min(max_response_size, MAX_BODY)
        self._lock = threading.Lock()
        self._unanswered: set[int] = set()
        self.progress = 0

    def expect(self, requests: list[InferenceRequest]) -> None:
        self._unanswered.update(request.number for request in requests)

    def chunk(self, request: InferenceRequest, body: bytes, head: ReplyHead | None, last: bool) -> None:
        if len(body) > self._limit:
            return self.fail(request, self._too_large(body))
        if head is None:
            message = Chunk(request.number, last)
        else:
            message = Chunk(request.number, last, head.status, head.phrase, head.headers or [])
        return self._answer(request, encode_frame(message, body), last)

    def fail(self, request: InferenceRequest, failure: Failure) -> None:
        message = Failed(request.number, failure.status, utf8(failure.message), utf8(failure.traceback))
        self._answer(request, encode_frame(message), True)

    def awaits(self, request: InferenceRequest) -> bool:
        """Its reply has not ended yet."""
        return request.number in self._unanswered

    def drop_unanswered(self, requests: list[InferenceRequest]) -> None:
        """Cancelled requests whose result nobody wanted: the frontend still counts them as in flight."""
        for request in requests:
            if request.number in self._unanswered:
                self._answer(request, encode_frame(Dropped(request.number)), True)

    def send(self, message: LoadProgress | Loaded | LoadFailed | CallDone) -> None:
        with self._lock:
            self._write(encode_frame(message))

    def _answer(self, request: InferenceRequest, frame: bytes, last: bool) -> None:
        """Nothing follows a request's end, whichever thread of the handler it comes from."""
        with self._lock:
            if request.number not in self._unanswered:
                return
            if last:
                self._unanswered.discard(request.number)
            self._write(frame)

    def _write(self, frame: bytes) -> None:
        self.progress += 1
        self._sock.sendall(frame)

    def _too_large(self, body: bytes) -> Failure:
        return Failure(
            500,
            f"The response of {len(body)} bytes is larger than max_response_size ({self._limit} bytes): "
            "raise max_response_size, or stream the response in chunks",
        )


def utf8(text: str) -> str:
    """An error's text may quote what the client sent: lone surrogates have no UTF-8, megabytes no place in a head."""
    return shortened(text, MAX_TEXT).encode("utf-8", "backslashreplace").decode()
