"""Returns freed memory to the system.

glibc keeps freed memory below the top of its heap while a small object above it is alive: without this, the
memory of many large requests would stay with the server.
"""

import asyncio
import ctypes
import logging
from collections.abc import Callable

log = logging.getLogger("msx.server")

EVERY = 5.0
"""Seconds between two checks."""

WORTHWHILE = 32 << 20
"""Bytes that were unused at two checks in a row. Giving back a GiB takes some tens of milliseconds on a thread; other
threads may wait for memory meanwhile."""


class FreeMemory:
    """`freed` returns the free bytes of the allocator, whether or not the system has them back; `give_back` returns all
    of them to the system."""

    def __init__(self, freed: Callable[[], int], give_back: Callable[[], object]) -> None:
        self._freed = freed
        self._give_back = give_back
        self._given = self._before = 0
        """Bytes that were returned and are still free; bytes that were free at the last check."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self.look()

    async def look(self) -> None:
        freed = self._freed()
        unused = min(freed, self._before) - self._given
        if unused >= WORTHWHILE:
            await asyncio.to_thread(self._give_back)
            log.info("%d MiB of freed memory were returned to the system", unused >> 20)
            freed = self._given = self._freed()
        self._before, self._given = freed, min(self._given, freed)


class _Mallinfo(ctypes.Structure):
    """The struct of glibc before 2.33, whose counts wrap at 4 GiB."""

    _fields_ = [(name, ctypes.c_uint) for name in ("arena", "a", "b", "c", "d", "e", "f", "used", "free", "top")]


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "a", "b", "c", "d", "e", "f", "used", "free", "top")]


def of_glibc() -> FreeMemory | None:
    """None with another C library: musl returns memory by itself."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        return None
    info, kind = (libc.mallinfo2, _Mallinfo2) if hasattr(libc, "mallinfo2") else (libc.mallinfo, _Mallinfo)
    info.restype = kind
    return FreeMemory(lambda: int(info().free), lambda: libc.malloc_trim(0))
