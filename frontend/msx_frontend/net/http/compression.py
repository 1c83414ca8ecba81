"""Bodies in gzip and deflate, in both directions. Called in threads: megabytes take longer than the loop may wait."""

from __future__ import annotations

import zlib

from msx_frontend.errors import BadRequest, PayloadTooLarge, ServiceError

WBITS = {"gzip": 31, "deflate": 15}
"""For zlib: `deflate` in HTTP is the zlib format (RFC 9110)."""
LEVEL = 1
"""Tensors of floating point hardly shrink more at a higher one, and take several times as long."""
WORTHWHILE = 1024
"""Bytes; smaller bodies are sent as they are."""


class UnknownEncoding(ServiceError):
    status, type, grpc_code = 415, "UnsupportedMediaTypeException", "INVALID_ARGUMENT"


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """Raises PayloadTooLarge for what would be larger than `limit` bytes, without making more than that."""
    wbits = WBITS.get(encoding)
    if wbits is None:
        raise UnknownEncoding(f"Content-Encoding {encoding!r} is not known here; gzip and deflate are.")
    stream = zlib.decompressobj(wbits)
    try:
        data = stream.decompress(body, limit + 1)
    except zlib.error as error:
        raise BadRequest(f"The body is no {encoding}: {error}.") from None
    if len(data) > limit:
        raise PayloadTooLarge(f"The request, decompressed, is larger than max_request_size ({limit} bytes).")
    if not stream.eof or stream.unused_data:
        raise BadRequest(
            f"The body is no {encoding}: it {'goes on after its end' if stream.eof else 'ends too early'}."
        )
    return data


def compressed_headers(encoding: str) -> list[tuple[bytes, bytes]]:
    return [(b"content-encoding", encoding.encode()), (b"vary", b"accept-encoding")]


def compress(body: bytes, encoding: str) -> bytes:
    stream = zlib.compressobj(LEVEL, zlib.DEFLATED, WBITS[encoding])
    return stream.compress(body) + stream.flush()


def accepted(header: str) -> str | None:
    """The encoding of Accept-Encoding that is served, by its weight, gzip before deflate; None to leave it."""
    weights = {name: _weight(header, name) for name in WBITS}
    best = max(weights, key=lambda name: weights[name])
    return best if weights[best] > 0 else None


def _weight(header: str, name: str) -> float:
    for item in header.lower().split(","):
        found, _, quality = item.strip().partition(";")
        if found.strip() in (name, "*" if name == "gzip" else name):
            return _quality(quality.strip())
    return 0.0


def _quality(text: str) -> float:
    try:
        return float(text.removeprefix("q=")) if text else 1.0
    except ValueError:
        return 0.0
