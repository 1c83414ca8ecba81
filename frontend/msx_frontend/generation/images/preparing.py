"""The way from images' URLs to `Image`s, beside the loop."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from msx_core.generation import Image
from msx_core.images.heads import NotAnImage, image_head
from msx_core.text_limits import too_much
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.images.data_url import data_of_url
from msx_frontend.generation.images.fetching import ImageFetcher, NotFetched, Room
from msx_frontend.generation.images.finder import ImageSource
from msx_frontend.generation.images.limits import ImageLimits

THREADS = 2
"""Requests whose images are checked at a time: base64 and digests take the processor."""

T = TypeVar("T")


class ImagePreparer:
    """Fetches and checks the images of requests, within the server's limits. No pixels are decoded."""

    def __init__(self, limits: ImageLimits) -> None:
        self.limits = limits
        self._fetcher = ImageFetcher(limits)
        self._threads = ThreadPoolExecutor(THREADS, "msx-image")

    async def prepare(self, sources: Sequence[ImageSource], hold: Callable[[int], None]) -> tuple[Image, ...]:
        """`hold` counts the bytes that are fetched. Raises WrongParameter, which names the part of the request."""
        room = Room(self.limits, hold)
        files = await _all([self._file(source, room) for source in sources])
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._images, sources, files)

    async def _file(self, source: ImageSource, room: Room) -> bytes | None:
        """The file that is fetched; None for one that the request has in itself."""
        if not source.is_fetched:
            return None
        try:
            return await self._fetcher.fetch(source.url, room)
        except NotFetched as error:
            raise WrongParameter(source.place, f"the image is not fetched: {error}") from None

    def _images(self, sources: Sequence[ImageSource], files: Sequence[bytes | None]) -> tuple[Image, ...]:
        images, size = [], 0
        for source, file in zip(sources, files, strict=True):
            images.append(self._image(source, file))
            size += len(images[-1].data)
            if size > (most := self.limits.request_size):
                raise WrongParameter(source.place, f"all images: {too_much('bytes', size, most, 'max_request_size')}")
        return tuple(images)

    def _image(self, source: ImageSource, file: bytes | None) -> Image:
        """Blocks."""
        try:
            data = data_of_url(source.url) if file is None else file
            self._check_size(len(data))
            media_type, width, height = image_head(data)
            self._check_pixels(width, height)
        except NotAnImage as error:
            raise WrongParameter(source.place, str(error)) from None
        digest = hashlib.sha256(data).hexdigest()
        return Image(data=data, media_type=media_type, width=width, height=height, digest=digest)

    def _check_size(self, size: int) -> None:
        if size > self.limits.size:
            raise NotAnImage(too_much("bytes", size, self.limits.size, "max_image_size"))

    def _check_pixels(self, width: int, height: int) -> None:
        most, pixels = self.limits.pixels, width * height
        if most is not None and pixels > most:
            key = "limit_max_image_pixels of the server's config.properties sets the limit"
            raise NotAnImage(f"the image has {width}x{height} = {pixels} pixels, at most {most} are allowed; {key}")


async def _all(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
