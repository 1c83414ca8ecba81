"""Operations of a model whose answer is one message: tokenize, embed."""

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

import msgspec

from msx_core.generation import ClassifyReply, EmbedReply
from msx_frontend.generation.errors import InvalidReply
from msx_frontend.generation.replies import JsonReply
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.turns import Turns, TurnSink
from msx_frontend.models.versions.model_version import ModelVersion

M = TypeVar("M", bound=msgspec.Struct)


class OperationReply(Generic[M]):
    """A reply of the answers to `messages`, which are of the type `kind`, in the order of the messages."""

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

    def begin(self, request: TextRequest) -> None:
        self._request = request
        sink_of = partial(_MessageSink, self)
        Turns(request, self._version, self._operation, self._messages, sink_of, self).begin()

    def answered(self, number: int, data: bytes) -> None:
        """Raises InvalidReply."""
        try:
            self._answers[number] = msgspec.msgpack.decode(data, type=self._kind)
        except msgspec.DecodeError as error:
            raise InvalidReply(self._version.source.name, self._kind.__name__, error) from None

    # -- TurnListener --

    def ended(self) -> None:
        whole = self._write([self._answers[number] for number in range(len(self._messages))])
        data = self._request.answer(whole.value, whole.headers)
        self._version.metrics.non_finite.check(data, whole.value)

    def failed(self, error: Exception) -> None:
        self._request.sink.fail(self._request.client_error(error))


class _MessageSink(TurnSink):
    __slots__ = ("_chunks", "_number", "_operations")

    def __init__(self, operations: OperationReply[M], turns: Turns, number: int, message: msgspec.Struct) -> None:
        super().__init__(turns)
        self._operations, self._number = operations, number
        self._chunks: list[bytes] = []

    def read(self, data: bytes) -> None:
        self._chunks.append(data)

    def complete(self) -> None:
        self._operations.answered(self._number, b"".join(self._chunks))


def vector_of(reply: EmbedReply) -> tuple[float, ...]:
    return struct.unpack(f"<{len(reply.embedding) // 4}f", reply.embedding)


def count_tokens(version: ModelVersion, replies: Sequence[EmbedReply] | Sequence[ClassifyReply]) -> int:
    """Count the tokens of all prompts, also in the model's metric."""
    tokens = sum(reply.prompt_tokens for reply in replies)
    version.metrics.text.prompt.inc(tokens)
    return tokens
