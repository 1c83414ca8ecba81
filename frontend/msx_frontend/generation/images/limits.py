"""The limits of images in requests, by the keys of config.properties."""

from __future__ import annotations

from typing import NamedTuple

from msx_core.images.heads import MAX_PIXELS
from msx_frontend.config import ServerConfig


class ImageLimits(NamedTuple):
    """Sizes in bytes."""

    images: int
    """The most of one request."""
    size: int
    """The most of one image."""
    request_size: int
    """The most of all images of one request."""
    pixels: int | None
    hosts: tuple[str, ...]
    """Names in lower case, which may begin with `*`."""
    seconds: float
    """The longest time to fetch the images of one request."""

    @classmethod
    def of(cls, config: ServerConfig) -> ImageLimits:
        return cls(
            config.max_images,
            config.max_image_size,
            config.max_request_size,
            MAX_PIXELS if config.limit_max_image_pixels else None,
            tuple(host.lower() for host in config.allowed_image_hosts),
            config.image_fetch_timeout,
        )
