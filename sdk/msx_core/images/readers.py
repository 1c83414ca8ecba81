"""The samples of a decoded image as they stand in its file, a part of the image at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from PIL import Image

Array = np.ndarray[Any, Any]
Box = tuple[int, int, int, int]
"""Left, top, right and bottom, in pixels."""

_BAND = 1 << 20
"""Pixels that are computed at once, so that memory is bounded whatever the image's size."""


class Reader(Protocol):
    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""

    @property
    def channels(self) -> int:
        """1, or 3: red, green and blue. Transparency is left out."""

    def read(self, box: Box, channel: int) -> Array:
        """Return the samples [rows, columns] of one channel."""


@dataclass(frozen=True)
class Greys:
    """A greyscale image, whose samples Pillow keeps whole. `dtype` where they are another type than Pillow takes them
    for."""

    image: Image.Image
    dtype: Any = None
    channels = 1

    @property
    def size(self) -> tuple[int, int]:
        return self.image.size

    def read(self, box: Box, channel: int) -> Array:
        samples = np.asarray(self.image.crop(box))
        return samples if self.dtype is None else samples.view(self.dtype)


@dataclass(frozen=True)
class Halves:
    """An image of 16-bit channels, of which Pillow holds 8 bits: it is decoded twice, for the upper and the lower byte.

    `places`: for each channel the places of its two bytes among the bands of the two images.
    """

    upper: Image.Image
    lower: Image.Image
    places: tuple[tuple[int, int], ...] = ((0, 0), (1, 1), (2, 2))

    @property
    def size(self) -> tuple[int, int]:
        return self.upper.size

    @property
    def channels(self) -> int:
        return len(self.places)

    def read(self, box: Box, channel: int) -> Array:
        upper, lower = (np.asarray(image.crop(box)) for image in (self.upper, self.lower))
        first, second = self.places[channel]
        samples: Array = upper[..., first].astype(np.uint16) << 8 | lower[..., second]
        return samples


def bands(size: tuple[int, int]) -> Iterator[Box]:
    """Divide an image into bands of rows."""
    width, height = size
    rows = max(1, _BAND // width)
    for top in range(0, height, rows):
        yield 0, top, width, min(top + rows, height)
