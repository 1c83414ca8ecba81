"""Messages to the process that tokenizes very long texts, and its answers: MessagePack, decoded by type."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta

from msx_core.generation.wire import WireStruct, encode
from msx_sdk.errors import InvalidInput, PredictionError
from msx_sdk.generation import ContextLengthExceeded, TokenizeRequest

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

HEAD = 8
"""Bytes of a message's length, before the message."""
GROWTH = 4
"""A body of JSON has more than a quarter of the bytes of its message: a short number of three takes nine here."""
ROOM = 64 << 20
"""Bytes for what a chat template adds to the messages, and for the ids and the places of tokens."""
TOO_LARGE = 413


class TextFiles(WireStruct, Generic[T]):
    """The first message to a process: what it loads. `calls` is the union of the calls that it answers then."""

    calls: ClassVar[Any]

    def load(self) -> T:
        """Raises HandlerLoadError."""
        raise NotImplementedError


class TextCall(WireStruct, Generic[T_contra, R_co]):
    """A question about a text. `result` is the type of the value of `answer`."""

    result: ClassVar[Any]

    def answer(self, texts: T_contra) -> R_co:
        """Raises InvalidInput."""
        raise NotImplementedError


class Tokenized(Protocol):
    def tokenized(self, request: TokenizeRequest) -> bytes: ...


class TokenizeCall(TextCall[Tokenized, bytes], tag="tokenize", array_like=True):
    request: TokenizeRequest
    result = bytes

    def answer(self, texts: Tokenized) -> bytes:
        """A `TokenizeReply`, encoded."""
        return texts.tokenized(self.request)


class TextDone(WireStruct, tag="done", array_like=True):
    """`value` is of the type that the call names as its `result`."""

    value: msgspec.Raw


class TextRefused(WireStruct, tag="refused", array_like=True):
    """A PredictionError, of the nearest class that is known here."""

    kind: Literal["ContextLengthExceeded", "InvalidInput", "PredictionError"]
    status: Annotated[int, Meta(ge=400, le=599)]
    message: str

    @classmethod
    def of(cls, error: PredictionError) -> TextRefused:
        message = sendable(error.message)
        if isinstance(error, ContextLengthExceeded):
            return cls(kind="ContextLengthExceeded", status=error.status, message=message)
        if isinstance(error, InvalidInput):
            return cls(kind="InvalidInput", status=error.status, message=message)
        return cls(kind="PredictionError", status=error.status, message=message)

    def error(self) -> PredictionError:
        if self.kind == "ContextLengthExceeded":
            return ContextLengthExceeded(self.message)
        if self.kind == "InvalidInput":
            return InvalidInput(self.message)
        return PredictionError(self.status, self.message)


class TextFailed(WireStruct, tag="failed", array_like=True):
    """Any other error, which is one of the program."""

    message: str

    def error(self) -> RuntimeError:
        return RuntimeError(self.message)


TextAnswer = TextDone | TextRefused | TextFailed
answers: msgspec.msgpack.Decoder[TextAnswer] = msgspec.msgpack.Decoder(TextAnswer)


def message_limit(largest_body: int) -> int:
    """The most bytes of a message in either direction. `largest_body` is the larger one of max_request_size and
    max_response_size: a request comes from a body of the former, and a reply goes into one of the latter."""
    return GROWTH * largest_body + ROOM


def packed(message: msgspec.Struct, most: int) -> bytes:
    """The message behind its length. Raises PredictionError 413 for more bytes than `most`."""
    data = encode(message)
    return head_of(len(data), most) + data


def head_of(length: int, most: int) -> bytes:
    """The head before so many bytes. Raises PredictionError 413 for more than `most`."""
    check_length(length, most)
    return length.to_bytes(HEAD, "little")


def length_in(head: bytes | bytearray, most: int) -> int:
    """The bytes of the message behind a head. Raises PredictionError 413 for more than `most`."""
    length = int.from_bytes(head, "little")
    check_length(length, most)
    return length


def check_length(length: int, most: int) -> None:
    if length > most:
        raise PredictionError(
            TOO_LARGE,
            f"The text, or what its tokenizer answers, has {length} bytes, the limit for long texts is {most}: send a "
            "shorter text, or raise max_request_size or max_response_size in config.properties",
        )


def sendable(text: str) -> str:
    """The text without lone surrogates, which a chat template may write and MessagePack does not have."""
    return text.encode("utf-8", "backslashreplace").decode()
