"""Format and size of an image file by its first bytes, without Pillow: nothing is decoded, so that no file is too large
to be looked at.

PNG (https://www.w3.org/TR/png-3/), JPEG (ITU-T T.81, annex B), GIF 89a, WebP (RFC 9649). A file that tells two sizes is
refused, because a decoder may believe the other one.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msx_core.generation.image import MediaType

MAX_PIXELS = 89_478_485
"""Pillow's own limit: a larger image would fill the memory."""
UNKNOWN = "the file is no PNG, JPEG, WebP or GIF"

_MOST_PARTS = 4096
"""Chunks, segments or blocks in front of the pixels that are looked at."""


class ImageHead(NamedTuple):
    media_type: MediaType
    width: int
    height: int


SizeOf = Callable[[bytes], tuple[int, int]]
"""Width and height by the file. Raises IndexError where it ends before them, and NotAnImage."""


class NotAnImage(ValueError):
    """The message says why."""


def image_head(data: bytes) -> ImageHead:
    """Raises NotAnImage for another format, and for a head that is damaged."""
    for mark, media_type, size_of in _FORMATS:
        if data.startswith(mark):
            return _head(data, media_type, size_of)
    raise NotAnImage(UNKNOWN)


def _head(data: bytes, media_type: MediaType, size_of: SizeOf) -> ImageHead:
    try:
        width, height = size_of(data)
    except IndexError:
        raise NotAnImage(f"the {media_type} ends within its head") from None
    if not (width and height):
        raise NotAnImage(f"the {media_type} has a side of 0 pixels")
    return ImageHead(media_type, width, height)


def _png(data: bytes) -> tuple[int, int]:
    kinds = [data[place + 4 : place + 8] for place in _png_chunks(data)]
    if kinds[0] != b"IHDR" or kinds.count(b"IHDR") > 1:
        raise NotAnImage("the image/png does not begin with the one IHDR that it must have")
    return _big(data, 16, 4), _big(data, 20, 4)


def _png_chunks(data: bytes) -> Iterator[int]:
    """Places of the chunks up to the pixels, at least one."""
    place = 8
    for _ in range(_MOST_PARTS):
        yield place
        if data[place + 4 : place + 8] == b"IDAT":
            return
        place += 12 + _big(data, place, 4)
    raise _too_many("image/png", "chunks")


def _jpeg(data: bytes) -> tuple[int, int]:
    frames = [place for place, marker in _jpeg_segments(data) if marker in _FRAMES]
    if len(frames) != 1:
        raise NotAnImage(f"the image/jpeg has {len(frames)} frames, not one")
    return _big(data, frames[0] + 7, 2), _big(data, frames[0] + 5, 2)


_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_SCAN, _FILL = 0xDA, 0xFF
_ALONE = {0x01, *range(0xD0, 0xD9)}
"""Markers of segments without a length."""


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Places and markers of the segments up to the first scan."""
    place = 2
    for _ in range(_MOST_PARTS):
        if data[place] != 0xFF:
            raise NotAnImage(f"the image/jpeg is damaged: no marker stands at byte {place}")
        marker = data[place + 1]
        if marker == _SCAN:
            return
        yield place, marker
        place += 1 if marker == _FILL else 2 if marker in _ALONE else 2 + max(_big(data, place + 2, 2), 2)
    raise _too_many("image/jpeg", "segments")


def _gif(data: bytes) -> tuple[int, int]:
    """The screen, or the first frame where that is larger: decoders enlarge the screen then."""
    place = _gif_frame(data)
    right = _little(data, place + 1, 2) + _little(data, place + 5, 2)
    bottom = _little(data, place + 3, 2) + _little(data, place + 7, 2)
    return max(_little(data, 6, 2), right), max(_little(data, 8, 2), bottom)


def _gif_frame(data: bytes) -> int:
    """Place of the first frame, behind extensions, which are blocks that a block of 0 bytes ends."""
    place, block = 13 + _table(data[10]), False
    for _ in range(_MOST_PARTS):
        if block:
            block, place = data[place] > 0, place + 1 + data[place]
        elif data[place] == 0x2C:
            return place
        elif data[place] == 0x21:
            block, place = True, place + 2
        else:
            raise NotAnImage("the image/gif has no frame")
    raise _too_many("image/gif", "blocks")


def _table(flags: int) -> int:
    """Bytes of the colour table that the flags announce."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if data[8:12] != b"WEBP":
        raise NotAnImage(UNKNOWN)
    if kind == b"VP8X":
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    if kind == b"VP8L" and data[20] == 0x2F:
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
    raise NotAnImage("the image/webp is damaged: it begins with none of its three chunks")


def _big(data: bytes, place: int, size: int) -> int:
    """Raises IndexError behind the end, as the next does."""
    return int.from_bytes(_at(data, place, size), "big")


def _little(data: bytes, place: int, size: int) -> int:
    return int.from_bytes(_at(data, place, size), "little")


def _at(data: bytes, place: int, size: int) -> bytes:
    found = data[place : place + size]
    if len(found) < size:
        raise IndexError(place)
    return found


def _too_many(media_type: MediaType, parts: str) -> NotAnImage:
    return NotAnImage(f"the {media_type} has more than {_MOST_PARTS} {parts} in front of its pixels")


_FORMATS: tuple[tuple[bytes, MediaType, SizeOf], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png", _png),
    (b"\xff\xd8\xff", "image/jpeg", _jpeg),
    (b"GIF87a", "image/gif", _gif),
    (b"GIF89a", "image/gif", _gif),
    (b"RIFF", "image/webp", _webp),
)
