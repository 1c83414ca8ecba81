"""The three stages of pipeline.py in mosec, behind a route for each way in which it passes values on."""

from __future__ import annotations

import numpy as np
from mosec import Runtime, Server, Worker  # type: ignore[import-not-found]
from mosec.mixin import NumBinIPCMixin, RedisShmIPCMixin  # type: ignore[import-not-found]


def shape_of(size: int) -> tuple[int, int]:
    """NumBin takes no more than 65,535 numbers a dimension."""
    rows = 1000 if size >= 10**6 else 1
    return rows, size // rows


class Make(Worker):  # type: ignore[misc]
    def deserialize(self, data: bytes) -> bytes:
        return data

    def forward(self, data: bytes) -> np.ndarray:  # type: ignore[type-arg]
        return np.full(shape_of(int(data)), 7, np.uint8)


class Pass(Worker):  # type: ignore[misc]
    def forward(self, data: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return data


class Sum(Worker):  # type: ignore[misc]
    def forward(self, data: np.ndarray) -> bytes:  # type: ignore[type-arg]
        return str(int(data.view(np.uint64).sum(dtype=np.uint64))).encode()

    def serialize(self, data: bytes) -> bytes:
        return data


STAGES = (Make, Pass, Sum)


class NumBinMake(NumBinIPCMixin, Make):  # type: ignore[misc]
    pass


class NumBinPass(NumBinIPCMixin, Pass):  # type: ignore[misc]
    pass


class NumBinSum(NumBinIPCMixin, Sum):  # type: ignore[misc]
    pass


class RedisMake(RedisShmIPCMixin, Make):  # type: ignore[misc]
    pass


class RedisPass(RedisShmIPCMixin, Pass):  # type: ignore[misc]
    pass


class RedisSum(RedisShmIPCMixin, Sum):  # type: ignore[misc]
    pass


WAYS = {"pickle": STAGES, "numbin": (NumBinMake, NumBinPass, NumBinSum), "redis": (RedisMake, RedisPass, RedisSum)}


def serve(way: str, redis: str) -> None:
    """`redis` is the URL of a server, for that way."""
    if way == "redis":
        RedisShmIPCMixin.set_redis_url(redis)
    server = Server()
    server.register_runtime({"/inference": [Runtime(stage) for stage in WAYS[way]]})
    server.run()
