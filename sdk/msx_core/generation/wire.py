"""The encoding of the types of text generation between server and worker."""

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from msx_core.generation.wide_integers import packable, unpacked

MOST_INTEGER = (1 << 63) - 1
"""Integers in calculations have 64 bits; those in messages, tools and template options may have any size."""
Integer = Annotated[int, Meta(ge=-MOST_INTEGER - 1, le=MOST_INTEGER)]
Natural = Annotated[int, Meta(ge=0, le=MOST_INTEGER)]
Positive = Annotated[int, Meta(ge=1, le=MOST_INTEGER)]
Share = Annotated[float, Meta(ge=0, le=1)]
Words = tuple[Annotated[str, Meta(min_length=1)], ...]
Tokens = tuple[Natural, ...]


class WireStruct(msgspec.Struct, kw_only=True, omit_defaults=True):
    pass


_encoder = msgspec.msgpack.Encoder()


T = TypeVar("T")


def encode(message: msgspec.Struct | msgspec.Raw) -> bytes:
    """Encodes as MessagePack."""
    try:
        return _encoder.encode(message)
    except OverflowError:
        return _encoder.encode(packable(message))


def decode(data: bytes, kind: type[T]) -> T:
    """Decodes what `encode` made. Raises msgspec.DecodeError."""
    return msgspec.msgpack.decode(data, type=kind, ext_hook=unpacked)
