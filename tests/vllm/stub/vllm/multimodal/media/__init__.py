import io
from typing import Any

from PIL import Image


class ImageMediaIO:
    def __init__(self, image_mode: str | None = "RGB", **kwargs: Any) -> None:
        self.image_mode = image_mode

    def load_bytes(self, data: bytes) -> Image.Image:
        image = Image.open(io.BytesIO(data))
        return image.convert(self.image_mode) if self.image_mode else image
