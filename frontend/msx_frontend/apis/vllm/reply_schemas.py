"""Schemas of the replies of vLLM's routes, for /openapi.json. Replies are written without them."""

from typing import Literal

from msgspec import Struct


class PooledUsage(Struct):
    prompt_tokens: int
    total_tokens: int
    completion_tokens: int


class PairScore(Struct):
    index: int
    object: Literal["score"]
    score: float


class ScoreList(Struct):
    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[PairScore]
    usage: PooledUsage


class Classified(Struct):
    """`label` is the likeliest."""

    index: int
    label: str
    probs: list[float]
    num_classes: int


class ClassifiedList(Struct):
    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[Classified]
    usage: PooledUsage


class PooledText(Struct):
    """`data` is a vector or scores; a text of base64 has little-endian float32."""

    index: int
    object: Literal["pooling"]
    data: list[float] | str


class PooledList(Struct):
    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[PooledText]
    usage: PooledUsage


class ServerVersion(Struct):
    version: str
