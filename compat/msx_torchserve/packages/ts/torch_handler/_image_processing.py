"""The way from a PIL image to a tensor, as torchvision's transforms do it, without torchvision."""

from dataclasses import dataclass
from typing import Any

from .._extras import need


@dataclass(frozen=True)
class ImageProcessing:
    """[3, height, width] of 0 to 1, red, green and blue whatever the file has, then normalised.

    The shorter side becomes `resize` pixels (bilinear), and the middle `crop` × `crop` is cut out; without them the
    image stays as it is.
    """

    resize: int | None = None
    crop: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None

    def __call__(self, image: Any) -> Any:
        """`image` of Pillow. Raises InvalidInput where its samples need a range: see `of_picture`."""
        return self.of_picture(image_decoder().of_image(image))

    def of_picture(self, picture: Any) -> Any:
        """`picture`: an `msx_sdk.images.Picture`, whose samples are scaled by `imageRange`."""
        tensor = _tensor(picture.array(self._fitted))
        if self.mean and self.std:
            torch = need("torch")
            mean, std = (torch.tensor(values).reshape(-1, 1, 1) for values in (self.mean, self.std))
            tensor = (tensor - mean) / std
        return tensor

    def _fitted(self, image: Any) -> Any:
        if self.resize:
            image = _resized(image, self.resize)
        return _cropped(image, self.crop) if self.crop else image


IMAGENET = ImageProcessing(resize=256, crop=224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
"""The normalisation with which torchvision's classifiers were trained."""


def _resized(image: Any, side: int) -> Any:
    width, height = image.size
    scale = side / min(width, height)
    size = (side, int(height * scale)) if width <= height else (int(width * scale), side)
    return image.resize(size, need("PIL.Image").Resampling.BILINEAR)


def _cropped(image: Any, side: int) -> Any:
    """Pixels outside of the image are black."""
    left, top = (round((length - side) / 2) for length in image.size)
    return image.crop((left, top, left + side, top + side))


def _tensor(pixels: Any) -> Any:
    return need("torch").from_numpy(pixels / 255).permute(2, 0, 1).contiguous()


def image_decoder(context: Any = None) -> Any:
    """Return the decoder of a model's images, which has its `imageRange`. Raises HandlerLoadError without Pillow."""
    need("numpy")
    need("PIL.Image")
    decoder = need("msx_sdk.images").ImageDecoder
    return decoder(max_pixels=None) if context is None else decoder.of(context, max_pixels=None)
