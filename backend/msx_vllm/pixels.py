"""Memory of decoded images: a bound for all requests of a worker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msx_core.images.heads import MAX_PIXELS
from msx_sdk.errors import InvalidInput

MOST_PIXELS = 4 * MAX_PIXELS
"""A pixel has three bytes: about 1 GiB."""


class PixelRoom:
    """Room for `most` pixels; who comes first gets it first."""

    def __init__(self, most: int) -> None:
        self._most = self._free = most
        self._turn, self._changed = asyncio.Lock(), asyncio.Event()

    @asynccontextmanager
    async def hold(self, pixels: int) -> AsyncIterator[None]:
        """Wait until so many fit, and hold them. Raises InvalidInput for more than there is room for at all."""
        if pixels > self._most:
            raise InvalidInput(
                f"images: those of the request have {pixels} pixels together; at most {self._most} are decoded at a "
                "time: send smaller or fewer ones"
            )
        async with self._turn:
            while self._free < pixels:
                self._changed.clear()
                await self._changed.wait()
            self._free -= pixels
        try:
            yield
        finally:
            self._free += pixels
            self._changed.set()
