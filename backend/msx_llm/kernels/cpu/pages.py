"""Gives memory of the host back to the system: that of parameters, and what compiling has left."""

import ctypes
import mmap
import os
from collections.abc import Iterable
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def release(parameters: Iterable[Any]) -> None:
    """Their values are lost. They keep their addresses, which compiled graphs know, and get pages again when they are
    written; until then they are zero.

    MindSpore has no way to do this: what `set_data` replaces stays in its pool and in the graphs. Raises OSError.
    """
    for parameter in parameters:
        _release(parameter.data_ptr(), int(parameter.nbytes))


def trim() -> None:
    """The C library keeps what is freed; compiling a graph frees much of what it takes."""
    if hasattr(_libc, "malloc_trim"):  # only glibc has it
        _libc.malloc_trim(0)


def _release(address: int, size: int) -> None:
    """Whole pages, so that a neighbour in the first or last one keeps its values."""
    first, end = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE, (address + size) // mmap.PAGESIZE * mmap.PAGESIZE
    if end > first and _libc.madvise(first, end - first, mmap.MADV_DONTNEED):
        code = ctypes.get_errno()
        raise OSError(code, f"the memory of a parameter cannot be released: {os.strerror(code)}")
