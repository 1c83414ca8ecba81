"""Images of more than 8 bits a channel."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from msx_core.errors import InvalidInput
from msx_core.images.readers import Array, Reader, bands

Range = tuple[float, float]
"""The samples that become black and white."""

LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in a greyscale image: ITU-R BT.601, as Pillow has them."""


@dataclass(frozen=True)
class ImageSamples:
    """Samples of an image, as its file describes them.

    `kind` names them in messages. `whole` is the range of their type, None where no image uses that of its type:
    signed, 32-bit and float samples. `declared` is the range that the file tells. The decoder has multiplied the
    file's values by `factor`. `inverted`: the lowest sample is white.
    """

    kind: str
    whole: Range | None
    declared: Range | None = None
    factor: float = 1.0
    inverted: bool = False

    def scaled(self, values: Array, black_white: Range) -> Array:
        """Return 0 (black) to 255 (white). Raises InvalidInput for NaN."""
        black, white = black_white
        parts = (values / self.factor - black) / (white - black)
        if np.isnan(parts).any():
            raise InvalidInput("the image has samples that are not a number (NaN)")
        parts = np.clip(parts, 0, 1)
        return (1 - parts if self.inverted else parts) * 255


@dataclass(frozen=True)
class DeepImage:
    """`reader` is None where Pillow gives the upper 8 bits alone."""

    samples: ImageSamples
    reader: Reader | None


def planes(samples: ImageSamples, reader: Reader, channels: int, black_white: Range) -> Iterator[Image.Image]:
    """Yield 32-bit float images of 0 to 255, one at a time: greyscale, or red, green and blue.

    A greyscale file has one plane for a model of 3 channels, too. Raises InvalidInput for NaN.
    """
    every = range(reader.channels)
    for chosen in [every] if channels == 1 else [(channel,) for channel in every]:
        plane = Image.new("F", reader.size)
        for box in bands(reader.size):
            parts = [samples.scaled(reader.read(box, channel), black_white) for channel in chosen]
            plane.paste(Image.fromarray(_grey(parts).astype(np.float32)), box)
        yield plane


def _grey(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.tensordot(LUMA, np.stack(parts), 1)
