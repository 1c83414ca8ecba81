"""Decodes the images of one model."""

from __future__ import annotations

import io
import logging
import struct
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from PIL import Image, UnidentifiedImageError

from msx_core.config import parse_model_config
from msx_core.context import Context
from msx_core.errors import InvalidInput
from msx_core.images.deep import DeepImage, ImageSamples, Range, planes
from msx_core.images.formats import deep_by_mode, deep_image
from msx_core.images.heads import MAX_PIXELS as MAX_PIXELS
from msx_core.images.rawmodes import upright
from msx_core.images.readers import Array

KEY = "imageRange"

_DAMAGED = (
    OSError,
    ValueError,
    SyntaxError,
    TypeError,
    LookupError,
    ArithmeticError,
    EOFError,
    struct.error,
    zlib.error,
)
"""Errors that Pillow raises for damaged files, by format."""

log = logging.getLogger("msx.images")


class Picture:
    """An upright image of `channels` channels: samples of 0 (black) to 255 (white), whatever its file has.

    `array` may be called once: the image is computed while it is read.
    """

    def __init__(self, channels: int, parts: Iterable[Image.Image]) -> None:
        self._channels, self._parts = channels, parts

    def array(self, fit: Callable[[Image.Image], Image.Image] = lambda part: part) -> Array:
        """Return float32 [height, width, channels]. `fit` resizes, crops or turns a Pillow image: the whole one, or,
        of files of more than 8 bits, each channel of its own, of Pillow's mode F."""
        arrays = [_samples(fit(part)) for part in self._parts]
        stacked: Array = np.concatenate(arrays, axis=2) if len(arrays) > 1 else arrays[0]
        return stacked if stacked.shape[2] == self._channels else stacked.repeat(self._channels, axis=2)


def _samples(part: Image.Image) -> Array:
    """Return [height, width, channels]. Interpolation of mode F may have gone beyond black and white."""
    samples = np.atleast_3d(np.asarray(part, np.float32))
    return samples.clip(0, 255) if part.mode == "F" else samples


class ImageDecoder:
    """Decodes what Pillow can read, of any depth, to greyscale (1 channel) or to red, green and blue (3).

    Samples of more than 8 bits become 0 to 255 by `image_range` (the sample that is black, and the one that is white),
    else by what the file tells (PNG's sBIT, TIFF's SMinSampleValue and SMaxSampleValue, PGM's maximum, JPEG 2000's
    precision), else by the range of their type, with a warning in the log, once. Signed, 32-bit and float samples need
    `image_range`.
    """

    def __init__(
        self,
        channels: int = 3,
        *,
        image_range: Range | None = None,
        max_pixels: int | None = MAX_PIXELS,
        formats: list[str] | None = None,
    ) -> None:
        """`max_pixels` is None for no limit but Pillow's; `formats` is None for all that Pillow can read."""
        self.channels, self.image_range, self.max_pixels, self.formats = channels, image_range, max_pixels, formats
        self._warned = False

    @classmethod
    def of(
        cls,
        context: Context,
        channels: int = 3,
        *,
        max_pixels: int | None = MAX_PIXELS,
        formats: list[str] | None = None,
    ) -> ImageDecoder:
        """Return the decoder of a model, with the `imageRange` of its model-config.yaml. Raises ValueError for a wrong
        one."""
        image_range = parse_model_config(context.model_yaml_config)[0].image_range
        return cls(channels, image_range=image_range, max_pixels=max_pixels, formats=formats)

    def decode(self, data: bytes | bytearray) -> Picture:
        """Decode a file. Raises InvalidInput for one that cannot be read, is too large, or needs `image_range`."""
        if not isinstance(data, (bytes, bytearray)):
            raise InvalidInput(f"expected an image file, got {type(data).__name__}")
        data = bytes(data)
        with image_errors(len(data), self.formats):
            image = Image.open(io.BytesIO(data), formats=self.formats)
            self._check_pixels(image)
            return self._picture(image, deep_image(image, data))

    def of_image(self, image: Image.Image) -> Picture:
        """Like `decode`, for an image that Pillow has opened: 16-bit colours have the 8 bits that it took of them."""
        return self._picture(image, deep_by_mode(image))

    def _check_pixels(self, image: Image.Image) -> None:
        pixels, limit = image.width * image.height, self.max_pixels
        if limit is not None and pixels > limit:
            raise InvalidInput(f"the image has {image.width}x{image.height} = {pixels} pixels; the limit is {limit}")

    def _picture(self, image: Image.Image, deep: DeepImage | None) -> Picture:
        if deep is not None:
            samples, reader = deep.samples, deep.reader
            black_white = self._range(samples)
            if reader is not None:
                return Picture(self.channels, planes(samples, reader, self.channels, black_white))
            if black_white != samples.whole:
                raise InvalidInput(
                    f"of this {image.format} with {samples.kind} samples only the upper 8 bits can be read, so that it "
                    f"cannot be scaled from {_shown(black_white)}: send a PNG, or a TIFF without planes"
                )
        return Picture(self.channels, [upright(image).convert("L" if self.channels == 1 else "RGB")])

    def _range(self, samples: ImageSamples) -> Range:
        if self.image_range is not None:
            return self.image_range
        if samples.whole is None:
            raise InvalidInput(
                f"the image has {samples.kind} samples: the model needs {KEY}: [black, white] in its "
                "model-config.yaml to read them; send an image of 8 or 16 bits a channel otherwise"
            )
        if samples.declared is None:
            self._warn(samples.kind, samples.whole)
        return samples.declared or samples.whole

    def _warn(self, kind: str, whole: Range) -> None:
        if not self._warned:
            log.warning(
                "An image has %s samples and does not tell their range: they are read as %s. Where fewer bits are used "
                "(a 12-bit X-ray), it is too dark: set %s: [black, white] in model-config.yaml. Said once.",
                kind, _shown(whole), KEY,
            )  # fmt: skip
        self._warned = True


def _shown(black_white: Range) -> str:
    return f"{black_white[0]:g} to {black_white[1]:g}"


@contextmanager
def image_errors(size: int, formats: Sequence[str] | None) -> Iterator[None]:
    """Pillow's errors as InvalidInput. `size` of the file, in bytes; `formats` that are read, None for all."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large images, and of tags that are damaged
            yield
    except InvalidInput:
        raise
    except Image.DecompressionBombError as error:
        raise InvalidInput(f"the image is refused: {error}") from None
    except UnidentifiedImageError:
        known = f"{size} bytes that are not {' or '.join(formats)}" if formats else f"{size} bytes of an unknown format"
        raise InvalidInput(f"not an image that Pillow can read: {known}") from None
    except _DAMAGED as error:
        raise InvalidInput(f"not an image that Pillow can read: {error}") from None
