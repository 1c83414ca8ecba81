"""Images of requests as vLLM's own server decodes them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from vllm.model_executor.model_loader import get_model_cls
from vllm.multimodal.media import ImageMediaIO
from vllm.tokenizers.hf import HfTokenizer

from msx_core.images.decoder import image_errors
from msx_sdk.errors import InvalidInput
from msx_vllm.messages import PlacedImage
from msx_vllm.pixels import MOST_PIXELS, PixelRoom

THREADS = 2
"""Images that are decoded at a time. A client that leaves does not end the decoding of one."""


class EngineImages:
    """`most`: images of one request; 0 for a model that reads text alone."""

    def __init__(self, engine: Any) -> None:
        self._config = engine.model_config
        self.most = most_images(engine.renderer)
        options = self._config.multimodal_config.media_io_kwargs if self.most else {}
        self._reader = ImageMediaIO(**options.get("image", {}))
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="images")
        self._room = PixelRoom(MOST_PIXELS)

    @asynccontextmanager
    async def decoded(self, images: Sequence[PlacedImage]) -> AsyncIterator[list[Any]]:
        """The images' pixels, as long as they are used. Raises InvalidInput for one that is damaged."""
        if not images:  # texts do not wait for their turn
            yield []
            return
        async with self._room.hold(sum(one.image.width * one.image.height for one in images)):
            yield [await self._decoded(one) for one in images]

    def mark(self, number: int) -> str | None:
        """The text that stands for the image of this number, from 1, in a prompt; None for models that need none."""
        found: str | None = get_model_cls(self._config).get_placeholder_str("image", number)
        return found

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _decoded(self, one: PlacedImage) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, one.image.data)
        except InvalidInput as error:
            raise InvalidInput(f"{one.place}: {error}") from None

    def _read(self, data: bytes) -> Any:
        with image_errors(len(data), None):
            return self._reader.load_bytes(data)


def most_images(renderer: Any) -> int:
    """Images of one request, by the model and `vllm.limit_mm_per_prompt`. 0 where the tokenizer writes messages by
    itself, as Mistral's: it reads no decoded images."""
    processor = renderer.mm_processor
    if processor is None or not isinstance(renderer.get_tokenizer(), HfTokenizer):
        return 0
    most: int = processor.info.allowed_mm_limits.get("image", 0)
    return most
