"""Requests of an agent for contents on a stream, and the server's answers. The agent asks, so that it sets the pace."""

import asyncio
import struct
from enum import IntEnum

import msgspec

BLOCK = 1 << 20
"""Bytes of an answer at most."""
MAX_REQUEST = 1024
"""Bytes."""

_LENGTH = struct.Struct(">I")
_HEAD = struct.Struct(">BI")


class ReadListing(msgspec.Struct, frozen=True, tag="listing"):
    digest: str
    offset: int


class ReadFile(msgspec.Struct, frozen=True, tag="file"):
    """`file` is its number in the listing."""

    digest: str
    file: int
    offset: int


class ReadDigest(msgspec.Struct, frozen=True, tag="digest"):
    """The SHA-256 of a file whose listing does not have it."""

    digest: str
    file: int


Request = ReadListing | ReadFile | ReadDigest
_requests = msgspec.msgpack.Decoder(Request)


class Answer(IntEnum):
    DATA = 0
    WAIT = 1
    """Still at it: the answer follows."""
    REFUSED = 2
    """A sentence why; it would be no better another time."""


class ContentStreamError(ConnectionError):
    """The other side does not keep to the protocol."""


async def write_request(writer: asyncio.StreamWriter, request: Request) -> None:
    body = msgspec.msgpack.encode(request)
    writer.write(_LENGTH.pack(len(body)) + body)
    await writer.drain()


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Raises ContentStreamError, or EOFError at the end of the stream."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > MAX_REQUEST:
        raise ContentStreamError(f"a request for contents has {length} bytes: the limit is {MAX_REQUEST}")
    try:
        request: Request = _requests.decode(await reader.readexactly(length))
    except msgspec.MsgspecError as error:
        raise ContentStreamError(f"a request for contents cannot be read: {error}") from None
    return request


async def write_answer(writer: asyncio.StreamWriter, answer: Answer, body: bytes = b"") -> None:
    writer.write(_HEAD.pack(answer, len(body)))
    writer.write(body)
    await writer.drain()


async def read_answer(reader: asyncio.StreamReader) -> tuple[Answer, bytes]:
    """Raises ContentStreamError, or EOFError at the end of the stream."""
    kind, length = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    if length > BLOCK or kind not in Answer.__members__.values():
        raise ContentStreamError("an answer for contents does not keep to the protocol")
    return Answer(kind), await reader.readexactly(length)
