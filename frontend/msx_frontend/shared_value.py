"""Large values between stages, as the server knows them: segments of a worker's memory, counted, never mapped."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol
from weakref import WeakSet

from msx_core.references import Key
from msx_frontend.job import Job


class SegmentOwner(Protocol):
    def give_back(self, segment: SharedSegment) -> None:
        """Nobody uses it any more."""


class SegmentReader(Protocol):
    def forget(self, key: Key) -> None:
        """The segment is not used any more."""


class SharedSegment:
    """`fd` is its descriptor, kept for those who will read it. `users` counts who may still have to: values that wait,
    and workers that read. It outlives its owner while there are any."""

    __slots__ = ("fd", "key", "lends", "owner", "readers", "size", "users")

    def __init__(self, key: Key, size: int, fd: int, owner: SegmentOwner) -> None:
        self.key, self.size, self.fd = key, size, fd
        self.owner: SegmentOwner | None = owner
        self.users = 0
        self.readers: WeakSet[SegmentReader] = WeakSet()
        """Readers that have its descriptor."""
        self.lends = 0
        """Replies that referred to it since it was given back the last time."""

    def use(self) -> None:
        self.users += 1

    def release(self) -> None:
        self.users -= 1
        if self.users:
            return
        if self.owner is None:
            self.close()
        else:
            self.owner.give_back(self)

    def orphan(self) -> None:
        """Its owner is gone, or will not use it any more."""
        self.owner = None
        if not self.users:
            self.close()

    def close(self) -> None:
        os.close(self.fd)
        for reader in self.readers:
            reader.forget(self.key)


class SharedValue:
    """The segments of one reply, held for those who get it. Who has it closes it, when all of them have answered."""

    __slots__ = ("segments",)

    def __init__(self, segments: Iterable[SharedSegment]) -> None:
        self.segments = tuple(segments)
        for segment in self.segments:
            segment.use()

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(segment.size for segment in self.segments)

    def close(self) -> None:
        """Idempotent."""
        segments, self.segments = self.segments, ()
        for segment in segments:
            segment.release()


class StageJob(Job):
    """A job of one stage of a model. `shared` is what its fields refer to; who made the job holds it until its end."""

    __slots__ = ("lent", "shared")

    def refer(self, shared: tuple[SharedValue, ...]) -> StageJob:
        """Let it refer to these values, before it is submitted."""
        self.shared = shared
        self.lent: SharedValue | None = None
        """Segments that its reply refers to, there before the reply. Whoever gets the reply takes them."""
        return self

    def take_lent(self) -> SharedValue | None:
        """Give its values to the caller."""
        lent, self.lent = self.lent, None
        return lent

    def lend(self, value: SharedValue) -> None:
        """The worker has told what the reply that comes refers to."""
        if self.done:
            value.close()
        else:
            if self.lent is not None:
                self.lent.close()
            self.lent = value
