"""Images, and finders of images, for tests."""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Any

from msx_frontend.config import ServerConfig
from msx_frontend.generation.images.finder import ImageFinder
from msx_frontend.generation.images.limits import ImageLimits
from msx_sdk.generation import Image

LIMITS = ImageLimits.of(ServerConfig())


def limits(**keys: Any) -> ImageLimits:
    """The limits of a server with these keys."""
    return ImageLimits.of(ServerConfig(**keys))


def finder(most: int = 0, ready: tuple[Image, ...] | None = None, **keys: Any) -> ImageFinder:
    """A model that reads `most` images; by default one that reads text alone."""
    return ImageFinder(most, limits(**keys), ready)


def png(width: int = 3, height: int = 2, more: int = 0) -> bytes:
    """A head that is whole, and `more` bytes of pixels that are not."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", bytes(more))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + bytes(4)


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def expected(data: bytes, width: int = 3, height: int = 2, at: int | None = None) -> Image:
    digest = hashlib.sha256(data).hexdigest()
    return Image(data=data, media_type="image/png", width=width, height=height, digest=digest, at=at)
