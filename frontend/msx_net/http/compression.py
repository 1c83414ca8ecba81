"""Content-Encoding of bodies, in both directions: gzip, deflate, zstd.

Called in threads: megabytes take longer than the event loop may wait.
"""

from __future__ import annotations

import importlib
import sys
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from msx_core.service_errors import BadRequest, PayloadTooLarge, UnknownEncoding
from msx_net.http.wire import BODYLESS

ENCODINGS = ("zstd", "gzip", "deflate")
"""The order of preference for a reply whose client accepts several."""

LEVEL = 1
"""A higher level hardly makes floating-point tensors smaller, and takes several times as long."""
WORTHWHILE = 1024
"""Bytes. Smaller bodies are sent as they are."""

MOST_WINDOW = 23
"""zstd's windows have at most 2^23 bytes (RFC 9659): what a body can make the server allocate beside its content."""

_GZIP, _ZLIB, _RAW = 31, 15, -15
"""zlib's `wbits` for each format."""

_DENSE = ("image/", "video/", "audio/", "font/woff")
_DENSE_TYPES = frozenset({"application/gzip", "application/zip", "application/zstd", "application/pdf"})
"""Content types that are compressed already."""
_TEXT_IMAGE = "image/svg+xml"


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """Raises PayloadTooLarge for what would be larger than `limit` bytes, without making more than that."""
    stream, invalid = _decompressor(encoding, body)
    try:
        data: bytes = stream.decompress(body, limit + 1)
    except invalid as error:
        raise BadRequest(f"The body is not {encoding}: {error}.") from None
    if len(data) > limit:
        raise PayloadTooLarge(f"The request, decompressed, is larger than max_request_size ({limit} bytes).")
    if not stream.eof or stream.unused_data:
        how = "goes on after its end" if stream.eof else "ends too early"
        raise BadRequest(f"The body is not {encoding}: it {how}.")
    return data


def _decompressor(encoding: str, body: bytes) -> tuple[Any, type[Exception]]:
    """Return a decompressor, and the class of its errors. Raises UnknownEncoding."""
    if encoding in ("gzip", "x-gzip"):
        return zlib.decompressobj(_GZIP), zlib.error
    if encoding == "deflate":
        return zlib.decompressobj(_ZLIB if _is_zlib(body) else _RAW), zlib.error
    if encoding == "zstd":
        zstd = _zstd()
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: MOST_WINDOW}), zstd.ZstdError
    raise UnknownEncoding(
        f"Content-Encoding {encoding!r} is not known here: send the body as it is, or in gzip, deflate or zstd."
    )


def _is_zlib(body: bytes) -> bool:
    """HTTP's deflate is the zlib format (RFC 9110 §8.4.1.2). Some clients send it without zlib's header."""
    return len(body) > 1 and body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0


@cache
def _zstd() -> Any:
    """Part of Python since 3.14. Imported when it is needed."""
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def compress(body: bytes, encoding: str) -> bytes:
    if encoding == "zstd":
        packed: bytes = _zstd().compress(body, level=LEVEL)
        return packed
    stream = zlib.compressobj(LEVEL, zlib.DEFLATED, _GZIP if encoding == "gzip" else _ZLIB)
    return stream.compress(body) + stream.flush()


def compressed_headers(encoding: str) -> list[tuple[bytes, bytes]]:
    return [(b"content-encoding", encoding.encode()), (b"vary", b"accept-encoding")]


def is_compressible(status: int, headers: Sequence[tuple[str, str]], size: int) -> bool:
    """Whether a whole reply gets smaller, and may be changed. `headers` are the family's or the handler's own."""
    if size < WORTHWHILE or status in BODYLESS:
        return False
    for name, value in headers:
        match name.lower():
            case "content-encoding" | "content-range":
                return False
            case "cache-control" if "no-transform" in value.lower():
                return False
            case "content-type" if _is_dense(value.partition(";")[0].strip().lower()):
                return False
    return True


def _is_dense(content_type: str) -> bool:
    return (content_type.startswith(_DENSE) and content_type != _TEXT_IMAGE) or content_type in _DENSE_TYPES


def accepted(header: str) -> str | None:
    """The encoding of Accept-Encoding with the highest weight (RFC 9110 §12.5.3); None to send bodies as they are."""
    if not header:
        return None
    weights = dict(_weight(item) for item in header.lower().split(","))
    weights.setdefault("gzip", weights.get("*", 0.0))
    best = max(ENCODINGS, key=lambda name: weights.get(name, 0.0))
    weight = weights.get(best, 0.0)
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else None


def _weight(item: str) -> tuple[str, float]:
    name, _, quality = item.partition(";")
    text = quality.strip().removeprefix("q=")
    try:
        return name.strip(), float(text) if text else 1.0
    except ValueError:
        return name.strip(), 0.0
