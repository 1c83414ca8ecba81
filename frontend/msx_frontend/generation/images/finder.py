"""Images in the messages and the prompt of one request: their places and URLs, in order."""

from __future__ import annotations

from typing import Any, NamedTuple

from msx_core.generation import Image
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.images.limits import ImageLimits

IMAGE_PARTS = ("image_url", "input_image")
"""The types of parts: of `/v1/chat/completions`, and of `/v1/responses`."""
_FETCHED = ("http://", "https://")


class ImageSource(NamedTuple):
    """`place` is the name of the part in the request."""

    place: str
    url: str

    @property
    def is_fetched(self) -> bool:
        return self.url[:8].lower().startswith(_FETCHED)


class ImagesWanted(Exception):
    """No failure: the request is read again when its images are ready."""

    def __init__(self, sources: list[ImageSource]) -> None:
        self.sources = sources


class ImageFinder:
    """Finds the images of a request while it is read: once for their URLs, and once more when they are ready."""

    def __init__(self, most: int, limits: ImageLimits, ready: tuple[Image, ...] | None) -> None:
        """`most`: the images of one request that the model reads."""
        self._most, self._limits, self._ready = most, limits, ready
        self._sources: list[ImageSource] = []
        self.ignored: list[str] = []
        """The places of members without effect."""

    @property
    def reads(self) -> bool:
        """Whether the model reads images at all."""
        return self._most > 0

    def part(self, place: str, part: dict[str, Any]) -> dict[str, Any]:
        """The part for a chat template, of one that has a type of `IMAGE_PARTS`. Raises WrongParameter."""
        given = part.get("image_url")
        if isinstance(given, dict):
            detail, url = given.get("detail"), given.get("url")
        else:
            detail, url = part.get("detail"), given
        if not isinstance(url, str):
            raise WrongParameter(place, "expected an image_url: this server keeps no files, so send the image in it")
        if detail not in (None, "auto"):
            self.ignored.append(f"{place}.image_url.detail" if isinstance(given, dict) else f"{place}.detail")
        image = self.image(f"{place}.image_url", url)
        return {"type": "image"} if image is None else {"type": "image", "digest": image.digest}

    def image(self, place: str, url: str) -> Image | None:
        """The image; None for one that is not ready yet. Raises WrongParameter."""
        number = len(self._sources)
        source = ImageSource(place, url)
        self._check(source, number)
        self._sources.append(source)
        return None if self._ready is None else self._ready[number]

    def images(self) -> tuple[Image, ...]:
        """All images that were read. Raises ImagesWanted where they are not ready."""
        if self._sources and self._ready is None:
            raise ImagesWanted(self._sources)
        return self._ready or ()

    def _check(self, source: ImageSource, number: int) -> None:
        if number >= self._limits.images:
            key = "max_images of the server's config.properties is the limit"
            raise WrongParameter(source.place, f"at most {self._limits.images} images are allowed in a request; {key}")
        if number >= self._most:
            raise WrongParameter(source.place, f"this model reads at most {self._most} images in a request")
        if source.is_fetched and not self._limits.hosts:
            raise WrongParameter(
                source.place,
                "this server fetches no images: send a data: URL; allowed_image_hosts of its config.properties names "
                "the hosts that it fetches from",
            )
        if not source.is_fetched and source.url[:5].lower() != "data:":
            raise WrongParameter(source.place, "expected a data: URL, or one of http or https")
