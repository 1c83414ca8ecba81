"""The bytes of a file that Pillow's decoders take: the raw modes of an image that is not loaded yet.

https://pillow.readthedocs.io/en/stable/handbook/writing-your-own-image-plugin.html. The raw modes of 16-bit colours
take the upper byte of each sample, in the order of bytes that they name; with the other order they take the lower one.
"""

import io
import sys
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageOps

from msx_core.images.readers import Halves

_SWAPPED = {"16B": "16L", "16L": "16B", "16N": "16B" if sys.byteorder == "little" else "16L"}
_COLOURS = {"RGB", "RGBA", "RGBX", "R", "G", "B", "A"}


def raw_modes(image: Image.Image) -> list[str]:
    """Return the raw mode of each part of the file; none where its format has no such modes."""
    tiles: list[Any] = getattr(image, "tile", [])
    return [_of(tile.args) for tile in tiles]


def set_raw_mode(image: Any, change: Callable[[str], str]) -> None:
    image.tile = [tile._replace(args=_changed(tile.args, change)) for tile in image.tile]


def read_halves(image: Image.Image, data: bytes, own: Callable[[str], str] = str) -> Halves | None:
    """Decode 16-bit colours twice; `own` mends the raw mode that Pillow has chosen. None for raw modes that do not take
    the other byte in the other order."""
    if not all(_swapped(own(raw)) for raw in raw_modes(image)):
        return None
    lower = reopen(image, data)
    set_raw_mode(lower, lambda raw: _swapped(own(raw)))
    set_raw_mode(image, own)
    return Halves(upright(image), upright(lower))


def reopen(image: Image.Image, data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data), formats=[str(image.format)])


def upright(image: Image.Image) -> Image.Image:
    """Decode an image, and turn it as its Exif data say."""
    return ImageOps.exif_transpose(image)


def _of(args: Any) -> str:
    first = args[0] if isinstance(args, tuple) and args else args
    return first if isinstance(first, str) else ""


def _changed(args: Any, change: Callable[[str], str]) -> Any:
    raw = change(_of(args))
    return (raw, *args[1:]) if isinstance(args, tuple) else raw


def _swapped(raw: str) -> str:
    """Return the raw mode of the other order of bytes, "" without one."""
    colours, _, order = raw.rpartition(";")
    return f"{colours};{_SWAPPED[order]}" if colours in _COLOURS and order in _SWAPPED else ""
