"""Converts a client's image to the array that a network takes."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta
from PIL import Image

from msx_backend.handlers._arrays import Array
from msx_core.base64_text import decode_base64
from msx_core.mindir import TensorSpec
from msx_core.number_range import OutOfRangeError, fit, numbers
from msx_sdk import HandlerLoadError, InvalidInput
from msx_sdk.images import MAX_PIXELS, ImageDecoder

Pixels = Annotated[int, Meta(ge=1)]
Interpolation = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]


class ImageOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The section `image:` of model-config.yaml. None is read off the model's input.

    The shorter side becomes `resize` pixels and the middle `size` is cut out; without `resize` the whole image is
    scaled to `size`. Values of 0 to 1 (pixel / `scale`) are normalised with `mean` and `std`, one number for each
    channel or one for all.
    """

    size: int | tuple[int, int] | None = None
    """One side of a square, or [height, width]."""
    resize: Pixels | None = None
    interpolation: Interpolation = "bilinear"
    grayscale: bool | None = None
    layout: Literal["NCHW", "NHWC"] | None = None
    scale: Annotated[float, Meta(gt=0)] = 255.0
    mean: float | list[float] = 0.0
    std: float | list[float] = 1.0
    softmax: bool = True
    top_k: Annotated[int, Meta(ge=1)] = 5
    max_pixels: Pixels = MAX_PIXELS


@dataclass(frozen=True)
class ImageReader:
    """Decodes, resizes and normalises images; gives float32 arrays without the batch axis."""

    height: int
    width: int
    channels: int
    layout: str
    options: ImageOptions
    decoder: ImageDecoder

    def read(self, value: Any) -> Array:
        """`value` is the file's bytes, its base64 text, or the finished tensor as lists. Raises InvalidInput."""
        if isinstance(value, str):
            value = _from_base64(value)
        if isinstance(value, (bytes, bytearray)):
            return self._normalised(self.decoder.decode(value).array(self._resized))
        return self._tensor(value)

    @property
    def shape(self) -> tuple[int, int, int]:
        size = (self.height, self.width)
        return (self.channels, *size) if self.layout == "NCHW" else (*size, self.channels)

    def _resized(self, image: Image.Image) -> Image.Image:
        method = Image.Resampling[self.options.interpolation.upper()]
        if self.options.resize is None:
            return image.resize((self.width, self.height), method)
        factor = self.options.resize / min(image.size)
        width, height = (max(1, round(side * factor)) for side in image.size)
        left, top = round((width - self.width) / 2), round((height - self.height) / 2)
        return image.resize((width, height), method).crop((left, top, left + self.width, top + self.height))

    def _normalised(self, pixels: Array) -> Array:
        mean, std = np.asarray(self.options.mean, np.float32), np.asarray(self.options.std, np.float32)
        normal: Array = (pixels / self.options.scale - mean) / std
        return normal.transpose(2, 0, 1) if self.layout == "NCHW" else normal

    def _tensor(self, value: Any) -> Array:
        """Like TorchServe's vision handlers, it also accepts a finished tensor."""
        try:
            array = fit(numbers(value), np.float32)
        except OutOfRangeError as error:
            raise InvalidInput(f"a tensor with a number that the model cannot hold: {error}") from None
        except (TypeError, ValueError):
            raise InvalidInput("expected an image file, its base64 text, or a tensor as nested lists") from None
        if array.shape != self.shape:
            raise InvalidInput(f"a tensor of shape {list(array.shape)} does not fit the model's {list(self.shape)}")
        return array


def image_reader(
    options: ImageOptions,
    inputs: list[TensorSpec],
    limited: bool = True,
    image_range: tuple[float, float] | None = None,
) -> ImageReader:
    """Derives options that are not set from the model's only input. Raises HandlerLoadError if that does not determine
    them."""
    if len(inputs) != 1:
        raise HandlerLoadError(f"image_classifier: the model takes {len(inputs)} inputs; expected one, of images")
    shape = inputs[0].shape if len(inputs[0].shape) == 4 else (-1, -1, -1, -1)
    layout = options.layout or ("NHWC" if shape[3] in (1, 3) and shape[1] not in (1, 3) else "NCHW")
    channels, *size = shape[1:] if layout == "NCHW" else (shape[3], shape[1], shape[2])
    if options.grayscale is not None or channels == -1:
        channels = 1 if options.grayscale else 3
    height, width = _size(options, size)
    for name, values in (("mean", options.mean), ("std", options.std)):
        if isinstance(values, list) and len(values) != channels:
            raise HandlerLoadError(f"model-config.yaml, image.{name}: {len(values)} values for {channels} channels")
    decoder = ImageDecoder(channels, image_range=image_range, max_pixels=options.max_pixels if limited else None)
    return ImageReader(height, width, channels, layout, options, decoder)


def _size(options: ImageOptions, model: list[int]) -> tuple[int, int]:
    if options.size is not None:
        size = options.size if isinstance(options.size, tuple) else (options.size, options.size)
        if min(size) < 1:
            raise HandlerLoadError(f"model-config.yaml, image.size: {options.size} is not a number of pixels")
        return size
    if -1 in model:
        raise HandlerLoadError(
            "model-config.yaml, image.size: the model takes any size; set the size to which images are scaled"
        )
    return model[0], model[1]


def _from_base64(text: str) -> bytes:
    """Base64 with or without the prefix of browsers, `data:image/png;base64,`."""
    try:
        return decode_base64(text.rpartition(",")[2])
    except ValueError:
        raise InvalidInput("the text is not the base64 of an image") from None
