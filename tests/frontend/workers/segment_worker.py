"""A process with the shared memory of a stage's worker and no handler: it does what a test tells it.

`python -m tests.frontend.workers.segment_worker SOCKET_FD OWNER SIZE NUMBER`: each line of its stdin is a command
as JSON, and it answers each by a line.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
from typing import Any

from msx_backend.segments.space import SegmentSpace
from msx_backend.segments.values import RequestValues
from msx_core.packed import unpack
from msx_protocol.segments import SegmentUse


class SegmentWorker:
    def __init__(self, space: SegmentSpace) -> None:
        self._space = space
        self._kept: list[Any] = []

    def lend(self, size: int, times: int = 1, text: str = "a", *, in_frames: bool = False) -> Any:
        """A value with so many bytes; what refers to it, and what it refers to."""
        values = RequestValues(self._space, [], in_frames=in_frames)
        value = {f"{at}": text.encode() * size for at in range(times)}
        body = values.pack(value)
        lent, values.lent = values.lent, []
        return [base64.b64encode(body).decode(), lent]

    def read(self, body: str, keys: list[tuple[int, int]]) -> Any:
        """The sizes and first bytes of what it refers to; what is given back after that."""
        values = RequestValues(self._space, [(owner, number) for owner, number in keys])
        try:
            value = unpack(base64.b64decode(body), resolve=values.resolve)
        except Exception as error:
            return [f"{type(error).__name__}: {error}", self._close(values)]
        return [{name: [len(one), one[:1].decode()] for name, one in value.items()}, self._close(values)]

    def few_descriptors(self) -> Any:
        """It may not open another file."""
        import resource

        fd = os.dup(0)
        os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (fd, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    def lend_in_frames(self, size: int) -> Any:
        return self.lend(size, in_frames=True)

    def tick(self, idle: float) -> Any:
        self._space.tick(idle)

    def state(self) -> Any:
        self._space.poll()
        pool = self._space.pool
        return {"segments": len(pool), "size": pool.size, "in_use": pool.in_use, "maps": _maps()}

    def _close(self, values: RequestValues) -> Any:
        values.close()
        return self._space.take_returned()


def _maps() -> int:
    """Segments that this process has mapped, its own and others'."""
    with open("/proc/self/maps") as maps:
        return sum("memfd:msx-segment" in line for line in maps)


def main() -> None:
    fd, owner, size, number = map(int, sys.argv[1:])
    worker = SegmentWorker(SegmentSpace(socket.socket(fileno=fd), SegmentUse(owner, size, number)))
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(worker, name)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
