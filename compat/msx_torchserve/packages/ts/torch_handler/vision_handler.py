"""`ts.torch_handler.vision_handler`: images to tensors."""

import base64
import binascii
import functools
import io
from abc import ABC
from typing import Any

from msx_sdk import InvalidInput

from .._extras import need
from ..handler_utils.timer import timed
from ._copies import stacked, to_device
from ._image_processing import ImageProcessing, image_decoder
from ._insights import attributions, integrated_gradients
from .base_handler import BaseHandler


class VisionHandler(BaseHandler, ABC):
    """A request's `data` or `body`: an image file, one as base64 text, or a tensor as nested lists.

    `image_processing` makes a tensor of a PIL image: transforms of torchvision, or any function. It gets the image in
    the mode of its file: "L" where it is greyscale, "I;16" where that has 16 bits. The processing of the handlers here
    scales samples of more than 8 bits by `imageRange` of model-config.yaml.
    """

    overlap = True

    image_processing: Any
    _decoder: Any = None

    @functools.cached_property
    def ig(self) -> Any:
        """Captum's integrated gradients of the model, which handlers call in explanations of their own."""
        return attributions(self.model)

    def initialize(self, context: Any) -> None:
        super().initialize(context)
        if not context.system_properties.get("limit_max_image_pixels", True):
            need("PIL.Image").MAX_IMAGE_PIXELS = None
        self._decoder = image_decoder(context)

    @timed
    def preprocess(self, data: Any) -> Any:
        """One tensor of all images, on the device; a list where their sizes differ."""
        images = [self._tensor(row) for row in data]
        if len({image.shape for image in images}) > 1:
            return [to_device(image, self.device) for image in images]
        return stacked(images, self.device)

    def _tensor(self, row: Any) -> Any:
        value = row.get("data") or row.get("body")
        if isinstance(value, str):
            value = _from_base64(value)
        if isinstance(value, (bytes, bytearray)):
            return self._processed(value)
        if isinstance(value, list):
            return need("torch").FloatTensor(value)
        raise InvalidInput(f"data: expected an image, base64 text or nested lists, got {type(value).__name__}")

    def _processed(self, data: bytes | bytearray) -> Any:
        processing = self.image_processing
        if not isinstance(processing, ImageProcessing):
            return processing(_image(data))
        try:
            return processing.of_picture((self._decoder or image_decoder()).decode(data))
        except InvalidInput as error:
            raise InvalidInput(f"data: {error.message}") from None

    def get_insights(self, tensor_data: Any, _: Any, target: Any = 0) -> Any:
        """One attribution for each image, by captum's integrated gradients."""
        return integrated_gradients(self.model, tensor_data, target).tolist()


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.rpartition("base64,")[2])
    except (ValueError, binascii.Error) as error:
        raise InvalidInput(f"data: text must be an image as base64: {error}") from None


def _image(data: bytes | bytearray) -> Any:
    """Reads the whole file, so that a truncated one fails here."""
    images = need("PIL.Image")
    try:
        image = images.open(io.BytesIO(data))
        image.load()
    except (OSError, ValueError, SyntaxError, images.DecompressionBombError) as error:
        raise InvalidInput(f"data: not an image that Pillow can read: {error}") from None
    return image
