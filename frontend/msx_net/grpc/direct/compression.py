"""Compressed messages of clients (gRPC's compression.md). What the server sends is never compressed."""

import zlib

IDENTITY = "identity"
ACCEPTED = "identity,deflate,gzip"
ENCODINGS = frozenset(ACCEPTED.split(","))

_WINDOWS = {"gzip": 31, "deflate": 15}
"""zlib's numbers of the formats; gRPC's deflate is zlib's format."""


class InvalidData(ValueError):
    """Not data of this encoding, or not all of it."""


def decompress(data: bytes, encoding: str, limit: int) -> bytes | None:
    """None where it has more than `limit` bytes, of which no more are made. Raises InvalidData."""
    if not data:
        return b""
    unpacker = zlib.decompressobj(_WINDOWS[encoding])
    try:
        unpacked = unpacker.decompress(data, limit + 1)
    except zlib.error as error:
        raise InvalidData(str(error)) from None
    if len(unpacked) > limit:
        return None
    if not unpacker.eof:
        raise InvalidData("it is cut off")
    return unpacked
