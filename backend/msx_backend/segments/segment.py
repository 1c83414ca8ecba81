"""One segment of shared memory that this process owns."""

import ctypes
import errno
import mmap
import os
import time

from msx_core.references import LEAST
from msx_protocol.segments import SegmentRefused, descriptors_exhausted, seal


def class_size(size: int) -> int:
    """The power of two that holds so many bytes."""
    return int(1 << max((size - 1).bit_length(), (2 * LEAST - 1).bit_length()))


class Segment:
    """`size` is a power of two. It has no name: it goes when nobody maps it or has its descriptor.

    `lent`: the loans that are not over. `written`: a handler has an array in it, or did not drop it yet.
    """

    __slots__ = ("address", "freed", "lent", "memory", "number", "size", "written")

    def __init__(self, number: int, size: int, memory: mmap.mmap) -> None:
        self.number, self.size, self.memory = number, size, memory
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.lent = 0
        self.written = False
        self.freed = time.monotonic()

    @property
    def free(self) -> bool:
        return not self.lent and not self.written

    def holds(self, address: int, size: int) -> bool:
        return self.address <= address and address + size <= self.address + self.size


def make_segment(number: int, size: int) -> tuple[Segment, int]:
    """The segment, mapped and sealed, and its descriptor, which belongs to the caller. Raises SegmentRefused."""
    try:
        fd = os.memfd_create(f"msx-segment-{number}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError as error:
        raise _refused(error, size) from None
    try:
        os.ftruncate(fd, size)
        memory = mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        seal(fd)
    except OSError as error:
        os.close(fd)
        raise _refused(error, size) from None
    return Segment(number, size, memory), fd


def _refused(error: OSError, size: int) -> SegmentRefused:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return SegmentRefused(descriptors_exhausted("The worker could not make a segment of shared memory"))
    return SegmentRefused(f"The worker could not make a segment of shared memory of {size} bytes: {error.strerror}.")
