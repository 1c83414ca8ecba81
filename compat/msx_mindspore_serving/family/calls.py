"""One request, of REST or of gRPC: made of what the client sent, submitted, answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeVar

from msx_core.priorities import NORMAL
from msx_core.replies.sink import Sink
from msx_core.replies.stream_credit import StreamCredit
from msx_core.service_errors import ServiceError
from msx_frontend.plugins.families import InstanceAnswer, InstanceRequest
from msx_mindspore_serving.family.answers import reply_size
from msx_mindspore_serving.family.servables import Servables
from msx_net.http.failures import reported

LARGE = 64 * 1024
"""Bytes of a request or a reply that take about a millisecond; larger ones are read and written in threads."""

MANY = 200
"""Instances that take about as long."""

_THREAD = ThreadPoolExecutor(1, thread_name_prefix="serving")
"""One: several would not be faster, and would hold several large requests at once."""

_T = TypeVar("_T")


class ServingCall(Generic[_T]):
    """A call that a transport may cancel, and its instances' answers. The methods that raise NotImplementedError are
    each protocol's; `make` and `reply` may run in a thread."""

    __slots__ = ("_over", "_request", "id", "priority", "servables", "sink")

    def __init__(self, servables: Servables, id: str, sink: Sink) -> None:
        self.servables, self.id, self.sink = servables, id, sink
        self.priority: int = getattr(sink, "priority", NORMAL)
        """Priority of its instances: the queue asks the sink of the request."""
        self._request: InstanceRequest | None = None
        self._over = False

    def make(self, message: _T) -> InstanceRequest:
        """Make the request of a client's message. Raises ServiceError."""
        raise NotImplementedError

    def reply(self, answers: Sequence[InstanceAnswer]) -> bytes:
        """Raises ServiceError."""
        raise NotImplementedError

    def refusal(self, error: ServiceError) -> bytes:
        """The reply to a request that failed as a whole."""
        raise NotImplementedError

    def send(self, data: bytes) -> None:
        raise NotImplementedError

    # -- what the transport calls --

    def begin(self, message: _T, *, large: bool) -> None:
        """Raises nothing: the sink is told."""
        if large:
            self._in_thread(partial(self.make, message), self._submit)
        else:
            self._try(lambda: self._submit(self.make(message)))

    @property
    def credit(self) -> StreamCredit | None:
        return None

    def cancel(self, error: ServiceError | None = None) -> None:
        """Its client has left, or may not wait longer. Idempotent."""
        self._over = True
        if self._request is not None:
            self._request.cancel(error)

    # -- what comes back --

    def answered(self, answers: Sequence[InstanceAnswer]) -> None:
        if self._over:
            return
        if len(answers) > MANY or reply_size(answers) > LARGE:
            self._in_thread(partial(self.reply, answers), self._send)
        else:
            self._try(lambda: self._send(self.reply(answers)))

    def _submit(self, request: InstanceRequest) -> None:
        self._request = request
        self.servables.submit(request)

    def _send(self, data: bytes) -> None:
        self._over, self._request = True, None  # ends the reference cycle
        self.send(data)

    def _in_thread(self, make: Any, then: Any) -> None:
        def made(done: asyncio.Future[Any]) -> None:
            if not self._over:
                self._try(lambda: then(done.result()))

        asyncio.get_running_loop().run_in_executor(_THREAD, make).add_done_callback(made)

    def _try(self, step: Any) -> None:
        try:
            step()
        except ServiceError as error:
            self._send(self.refusal(error))
        except Exception as error:
            self._over, self._request = True, None
            self.sink.fail(reported(error, self.id))
