"""How a call that a coroutine answers is answered: the same by both transports, which bring messages in and out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

from msx_net.grpc.admission import Admitted, Asks, admit
from msx_net.grpc.codes import Code
from msx_net.grpc.outcome import Outcome, failure
from msx_net.grpc.refused import Refused
from msx_net.grpc.served import ServedMethod


class OpenCall(Asks, Protocol):
    """A call, as its transport has it."""

    @property
    def deadline(self) -> float | None:
        """A time.monotonic() instant; None where the client has set none."""

    async def send(self, message: bytes, /) -> None:
        """A message of the answer; waits for a client that reads slowly. Raises RequestCancelled when it has left."""


async def answer_call(served: ServedMethod, messages: AsyncIterator[bytes], call: OpenCall) -> Outcome:
    """How the call ends, whatever its method raises. Only CancelledError is raised."""
    try:
        return Outcome(Code.OK, response=await _answered(served, messages, call))
    except Exception as error:
        return failure(error, served.service, call.id)


async def _answered(served: ServedMethod, messages: AsyncIterator[bytes], call: OpenCall) -> bytes | None:
    method = served.method
    if method.client_streams:
        admitted = admit(call, method.key)
        response = await method.answer(_Requests(messages, method.parse, admitted), _Context(served, call, admitted))
    else:
        request = parsed(method.parse, await _only(messages))
        admitted = admit(call, method.key)
        if admitted.key is not None:
            admitted.check_model(method.model_of(request))
        response = await method.answer(request, _Context(served, call, admitted))
    return None if method.server_streams else served.encoded(response)


class _Context:
    """The Context of a method, by any transport."""

    __slots__ = ("_call", "_served", "admitted")

    def __init__(self, served: ServedMethod, call: OpenCall, admitted: Admitted) -> None:
        self._served, self._call, self.admitted = served, call, admitted

    @property
    def deadline(self) -> float | None:
        return self._call.deadline

    async def write(self, message: Any, /) -> None:
        await self._call.send(self._served.encoded(message))


class _Requests:
    """The parsed messages of a client's stream. With each the key is asked for again, which may have been withdrawn.

    Raises Refused, InvalidKey, PriorityNotAllowed.
    """

    __slots__ = ("_admitted", "_messages", "_parse")

    def __init__(self, messages: AsyncIterator[bytes], parse: Callable[[bytes], Any], admitted: Admitted) -> None:
        self._messages, self._parse, self._admitted = messages, parse, admitted

    def __aiter__(self) -> _Requests:
        return self

    async def __anext__(self) -> Any:
        message = await anext(self._messages)
        self._admitted.ask_again()
        return parsed(self._parse, message)


async def _only(messages: AsyncIterator[bytes]) -> bytes:
    """The one message of a client, when it has said that there is no other. Raises Refused."""
    async for message in messages:
        async for _ in messages:
            raise not_one("more")
        return message
    raise not_one("none")


def parsed(parse: Callable[[bytes], Any], data: bytes) -> Any:
    """Raises Refused."""
    try:
        return parse(data)
    except Exception as error:  # protobuf's DecodeError
        raise Refused(Code.INTERNAL, f"The request is not a message of its method's type: {error}.") from None


def not_one(count: str) -> Refused:
    """`count` says how many: none, or more."""
    return Refused(Code.UNIMPLEMENTED, f"The method takes exactly one request, and the client has sent {count}.")
