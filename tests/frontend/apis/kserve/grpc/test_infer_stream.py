"""One ModelStreamInfer call that ends while its client has neither sent nor heard all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from msx_core.replies.reply_buffer import ReplyBuffer
from msx_core.service_errors import BadRequest, InvalidKey
from msx_frontend.apis.kserve.grpc.infer_messages import InferMessages
from msx_frontend.apis.kserve.grpc.infer_stream import InferStream
from msx_net.grpc.admission import Admitted
from msx_net.grpc.context import CallContext
from msx_net.grpc.messages import message_class

WATCHDOG = 120

Request = message_class("inference.ModelInferRequest")
StreamResponse = message_class("inference.ModelStreamInferResponse")


class Lost(Exception):
    """As a broken connection shows itself to the reader of requests."""


class Call:
    """Two requests that are not answered, and then what `more` does. `left`: the replies that were closed."""

    def __init__(self, more: Callable[[], Any]) -> None:
        self._more = more
        self.left: list[str] = []
        self.replies: list[ReplyBuffer] = []
        self.written: list[Any] = []
        self.waiting = asyncio.Event()
        context = cast(CallContext, SimpleNamespace(admitted=Admitted("r", None), write=self._write))
        self.stream = InferStream(self._submit, InferMessages("inference"), StreamResponse, context)

    async def requests(self) -> AsyncIterator[Any]:
        for _ in range(2):
            yield Request(model_name="m")
        await asyncio.sleep(0)  # both have been submitted then
        self.waiting.set()
        await self._more()

    def _submit(self, request: Any, context: CallContext, request_id: str) -> ReplyBuffer:
        left = self.left

        class Reply(ReplyBuffer):
            def close(self) -> None:
                super().close()
                left.append(request_id)

        self.replies.append(reply := Reply())
        return reply

    async def _write(self, message: Any) -> None:
        self.written.append(message)


async def breaks() -> None:
    raise Lost


@pytest.mark.parametrize(("more", "error"), [(asyncio.Event().wait, asyncio.CancelledError), (breaks, Lost)])
def test_what_runs_ends_with_the_call(more: Callable[[], Any], error: type[BaseException]) -> None:
    """The server cancels the call, or its requests cannot be read any further."""

    async def test() -> None:
        call = Call(more)
        task = asyncio.create_task(call.stream.run(call.requests()))
        await asyncio.wait_for(call.waiting.wait(), WATCHDOG)
        if error is asyncio.CancelledError:
            task.cancel()
        await asyncio.wait({task}, timeout=WATCHDOG)
        assert sorted(call.left) == ["r", "r-1"]
        with pytest.raises(error):
            await task

    asyncio.run(test())


async def is_withdrawn() -> None:
    raise InvalidKey("Token refused")


def test_what_came_before_the_key_was_withdrawn_is_answered() -> None:
    async def test() -> None:
        call = Call(is_withdrawn)
        task = asyncio.create_task(call.stream.run(call.requests()))
        await asyncio.wait_for(call.waiting.wait(), WATCHDOG)
        assert not call.left
        for reply in call.replies:
            reply.fail(BadRequest("No."))
        with pytest.raises(InvalidKey):
            await asyncio.wait_for(task, WATCHDOG)
        assert [message.error_message for message in call.written] == ["No.", "No."]

    asyncio.run(test())
