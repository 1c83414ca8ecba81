"""One of the small networks in mosec."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mosec import Runtime, Server, Worker  # type: ignore[import-not-found]


class SmallNet(Worker):  # type: ignore[misc]
    def __init__(self) -> None:
        from small_nets import Net  # type: ignore[import-not-found]  # it lies beside this file

        self.net = Net(os.environ["NET"])

    def deserialize(self, data: bytes) -> bytes:
        return data

    def serialize(self, data: bytes) -> bytes:
        return data

    def forward(self, data: Sequence[bytes]) -> list[bytes]:
        return self.net(data)  # type: ignore[no-any-return]


def serve(net: str, size: int, waits: Sequence[int]) -> None:
    """Serve it with a worker of its own behind a route for each of these waits (ms), /1 or /10."""
    os.environ["NET"] = net
    server = Server()
    server.register_runtime({f"/{w}": [Runtime(SmallNet, max_batch_size=size, max_wait_time=w)] for w in waits})
    server.run()
