"""Operations of a model whose answer is one message: tokenize, embed, classify."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from msx_core.generation import ClassifyReply, EmbedReply, TokenizeReply
from msx_core.non_finite import place_in
from msx_frontend.generation.errors import AnswersTooLarge, InvalidReply
from msx_frontend.generation.replies import JsonReply
from msx_frontend.generation.text_request import Headers, TextRequest
from msx_frontend.generation.turns import Turns, TurnSink
from msx_frontend.models.versions.model_version import ModelVersion

M = TypeVar("M", bound=EmbedReply | ClassifyReply | TokenizeReply)

SMALL = 64 << 10
"""Bytes of answers whose reply is written at once: a millisecond or two."""

_json = msgspec.json.Encoder().encode


class WrittenReply(NamedTuple):
    """A reply as JSON; `non_finite` is the place of its first number that JSON does not have."""

    data: bytes
    headers: Headers
    non_finite: str | None


class OperationReply(Generic[M]):
    """A reply of the answers to `messages`, which are of the type `kind`, in the order of the messages.

    `write` is called in a thread where the answers are many: the loop has other requests.
    """

    def __init__(
        self,
        version: ModelVersion,
        operation: str,
        messages: Sequence[msgspec.Struct],
        kind: type[M],
        write: Callable[[list[M]], JsonReply],
    ) -> None:
        self._version, self._operation, self._messages = version, operation, messages
        self._kind, self._write = kind, write
        self._answers: dict[int, M] = {}
        self._size = 0

    def begin(self, request: TextRequest) -> None:
        self._request = request
        sink_of = partial(_MessageSink, self)
        Turns(request, self._version, self._operation, self._messages, sink_of, self).begin()

    def came(self, size: int) -> None:
        """Count bytes of an answer. Raises AnswersTooLarge."""
        self._size += size
        if self._size > (most := self._request.api.limits.max_answers_size):
            raise AnswersTooLarge(most)

    def answered(self, number: int, data: bytes) -> None:
        """Raises InvalidReply."""
        try:
            self._answers[number] = msgspec.msgpack.decode(data, type=self._kind)
        except msgspec.DecodeError as error:
            raise InvalidReply(self._version.source.name, self._kind.__name__, error) from None

    # -- TurnListener --

    def ended(self) -> None:
        answers = [self._answers.pop(number) for number in range(len(self._messages))]
        self._version.metrics.text.prompt.inc(tokens_of(answers))
        if self._size <= SMALL:
            self._send(self._written(answers))
        else:
            self._send_later(answers)

    def failed(self, error: Exception) -> None:
        self._request.sink.fail(self._request.client_error(error))

    def _send_later(self, answers: list[M]) -> None:
        found: list[WrittenReply] = []

        async def write() -> None:
            found.append(await asyncio.to_thread(self._written, answers))

        self._request.after(write, lambda: self._send(found.pop()))

    def _written(self, answers: list[M]) -> WrittenReply:
        reply = self._write(answers)
        data = _json(reply.value)
        return WrittenReply(data, reply.headers, place_in(data, reply.value))

    def _send(self, written: WrittenReply) -> None:
        self._request.send(written.data, written.headers)
        if written.non_finite is not None:
            self._version.metrics.non_finite.found(written.non_finite)


class _MessageSink(TurnSink):
    __slots__ = ("_chunks", "_number", "_operations")

    def __init__(self, operations: OperationReply[Any], turns: Turns, number: int, message: msgspec.Struct) -> None:
        super().__init__(turns)
        self._operations, self._number = operations, number
        self._chunks: list[bytes] = []

    def read(self, data: bytes) -> None:
        self._operations.came(len(data))
        self._chunks.append(data)

    def complete(self) -> None:
        self._operations.answered(self._number, b"".join(self._chunks))


def tokens_of(replies: Sequence[EmbedReply | ClassifyReply | TokenizeReply]) -> int:
    """Tokens of all prompts."""
    return sum(reply.prompt_tokens for reply in replies if not isinstance(reply, TokenizeReply))
