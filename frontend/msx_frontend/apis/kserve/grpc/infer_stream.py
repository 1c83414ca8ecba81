"""One call of ModelStreamInfer: many requests, any number of responses to each, as they are ready."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from msx_core.replies.reply_buffer import ReplyBuffer
from msx_core.service_errors import ServiceError
from msx_frontend.apis.kserve.grpc.infer_messages import InferMessages
from msx_frontend.apis.kserve.infer import check, opened
from msx_net.grpc.context import CallContext
from msx_net.grpc.outcome import reported
from msx_net.grpc.status import sentence

log = logging.getLogger("msx.grpc")

AT_ONCE = 64
"""Requests of one call that may be open; the client's next one is read when one of them has ended."""

FINAL = "triton_final_response"
WANTS_FINAL = "triton_enable_empty_final_response"

Submit = Callable[[Any, CallContext, str], ReplyBuffer]


class InferStream:
    """A bad request is answered by an `error_message`, and the call goes on. Responses say by `id` whose they are."""

    def __init__(self, submit: Submit, messages: InferMessages, response: Any, context: CallContext) -> None:
        self._submit = submit
        self._messages = messages
        self._response = response
        self._context = context
        self._writing = asyncio.Lock()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._open: set[asyncio.Task[None]] = set()
        self._count = 0

    async def run(self, requests: AsyncIterator[Any]) -> None:
        """Until the client has sent all and heard all; when it leaves, all that runs is cancelled. Raises InvalidKey,
        once those that came before are answered."""
        try:
            async for request in requests:
                await self._room.acquire()
                self._start(request)
            await asyncio.gather(*self._open)
        except ServiceError:
            await asyncio.gather(*self._open)
            raise
        finally:
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    def _start(self, request: Any) -> None:
        self._count += 1
        task = asyncio.create_task(self._answered(request, self._count - 1))
        self._open.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._open.discard(task)
        self._room.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("a response could not be sent: %s", error)

    async def _answered(self, request: Any, number: int) -> None:
        """`number`: how many of the call came before it."""
        admitted = self._context.admitted
        request_id = f"{admitted.id}-{number}" if number else admitted.id
        try:
            if number:
                admitted.count_request()
            admitted.check_model(request.model_name)
            await self._answer(request, request_id)
        except Exception as error:
            await self._fail(request, sentence(reported(error, request_id)))

    async def _answer(self, request: Any, request_id: str) -> None:
        reply = self._submit(request, self._context, request_id)
        last, version = False, request.model_version
        try:
            head = await reply.head()
            if head.status >= 400:
                check(head.status, [message async for message in reply])
            async for message in reply:
                last = reply.exhausted
                response = self._messages.response(*opened(message, request.model_name))
                response.model_name = request.model_name  # it may be an alias
                version = response.model_version
                await self._send(response, last)
            if not last and request.parameters[WANTS_FINAL].bool_param:
                await self._send(self._messages.empty(request.model_name, version, request.id), True)
        finally:
            reply.close()

    async def _fail(self, request: Any, message: str) -> None:
        response = self._messages.empty(request.model_name, request.model_version, request.id)
        await self._send(response, True, message)

    async def _send(self, response: Any, last: bool, error: str = "") -> None:
        self._messages.set_parameters(response.parameters, {FINAL: last})
        async with self._writing:
            await self._context.write(self._response(infer_response=response, error_message=error))
