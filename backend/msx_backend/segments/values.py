"""The large values of one request, read from and written to shared memory."""

from typing import Any

from msx_backend.segments.space import SegmentSpace
from msx_core.packed import PACKED, InvalidPacked, pack, pack_shared, unpack
from msx_core.references import LEAST, Key, Reference
from msx_protocol.segments import SegmentRefused
from msx_sdk.errors import PredictionError
from msx_sdk.request import Part

UNAVAILABLE = 503


class RequestValues:
    """See `msx_sdk.request.SharedValues`, and `SharedPlace` for its replies.

    `keys` are the segments that the request was given: a reference to any other one is refused.
    """

    __slots__ = ("_in_frames", "_inputs", "_space", "keys", "lent")

    def __init__(self, space: SegmentSpace, keys: list[Key], *, in_frames: bool = False) -> None:
        """`in_frames`: replies refer to no segments."""
        self._space, self.keys, self._in_frames = space, keys, in_frames
        self._inputs: dict[Key, Any] = {}
        """Whole segments as arrays: what handlers get are views of them."""
        self.lent: list[Key] = []
        """Segments that the next reply refers to."""

    # -- reading --

    def resolve(self, reference: Reference) -> Any:
        """Bytes, or an array that cannot be written. Raises InvalidPacked, PredictionError."""
        key, start, end = reference.key, reference.start, reference.start + reference.size
        if key not in self.keys:
            raise InvalidPacked("it refers to shared memory that the request was not given")
        try:
            memory = self._space.memory(key)
        except SegmentRefused as error:
            raise PredictionError(UNAVAILABLE, str(error)) from None
        if end > len(memory):
            raise InvalidPacked(f"it refers to bytes {start} to {end} of a segment of {len(memory)}")
        if not reference.dtype:
            return memory[start:end]
        whole = self._inputs.get(key)
        if whole is None:
            import numpy as np

            whole = self._inputs[key] = np.frombuffer(memory, np.uint8)
        return whole[start:end].view(reference.dtype).reshape(reference.shape)

    def resolve_copy(self, reference: Reference) -> Any:
        """The same, but the array is the caller's own."""
        value = self.resolve(reference)
        return value.copy() if reference.dtype else value

    def inline(self, part: Part) -> Part:
        """The same field without references. What cannot be read stays as it is: reading it fails the request."""
        if part.content_type != PACKED or not self.keys:
            return part
        try:
            return Part(pack(unpack(part.data, resolve=self.resolve)), part.content_type)
        except (InvalidPacked, PredictionError):
            return part

    # -- writing --

    def pack(self, value: Any) -> bytes:
        """As `packed.pack`. Raises PredictionError, too."""
        try:
            return pack_shared(value, self)
        except SegmentRefused as error:
            self._take_back()
            raise PredictionError(UNAVAILABLE, str(error)) from None
        except BaseException:
            self._take_back()
            raise

    def array(self, value: Any) -> Reference | None:
        """Refer to an array without a copy, where it is in a segment already: an output of the handler, or an input of
        this request."""
        import numpy as np

        if self._in_frames:
            return None
        dtype, size = value.dtype.name, value.nbytes
        if value.flags.c_contiguous and value.dtype.isnative:
            address = value.__array_interface__["data"][0]
            if found := self._found(address, size):
                return Reference(*found, size, dtype, value.shape)
        segment = self._space.take(size)
        if segment is None:
            return None
        np.copyto(np.frombuffer(segment.memory, dtype, value.size).reshape(value.shape), value, casting="equiv")
        return Reference(*self._lend_written(segment.number), 0, size, dtype, value.shape)

    def data(self, value: bytes | bytearray | memoryview) -> Reference | None:
        size = memoryview(value).nbytes
        segment = self._space.take(size) if size > LEAST and not self._in_frames else None
        if segment is None:
            return None
        memoryview(segment.memory)[:size] = memoryview(value).cast("B")
        return Reference(*self._lend_written(segment.number), 0, size)

    def output(self, shape: tuple[int, ...], dtype: Any) -> Any:
        try:
            return self._space.output(shape, dtype, ordinary=self._in_frames)
        except SegmentRefused as error:
            raise PredictionError(UNAVAILABLE, str(error)) from None

    # -- the end --

    def close(self) -> None:
        """The request is over: what it read is given back, and what was not sent is not lent."""
        if self.lent:
            self._take_back()
        for key in self.keys:
            self._space.returns(key, self._inputs.pop(key, None))
        self.keys = []

    def _found(self, address: int, size: int) -> tuple[int, int, int] | None:
        """Owner, segment and start of an array that is in one."""
        if segment := self._space.pool.find(address, size):
            return *self._lend(segment.number), address - segment.address
        for key, whole in self._inputs.items():
            begin = whole.__array_interface__["data"][0]
            if begin <= address and address + size <= begin + whole.nbytes:
                self.lent.append(key)
                return *key, address - begin
        return None

    def _lend_written(self, number: int) -> Key:
        """Lend it before it is dropped: any thread may take one that is neither."""
        key = self._lend(number)
        self._space.pool.dropped(number)
        return key

    def _lend(self, number: int) -> Key:
        self._space.pool.lend(number)
        self.lent.append((self._space.owner, number))
        return self.lent[-1]

    def _take_back(self) -> None:
        for owner, number in self.lent:
            if owner == self._space.owner:
                self._space.pool.returned(number, 1)
        self.lent = []
