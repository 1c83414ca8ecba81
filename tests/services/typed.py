"""Typed requests and replies: a dataclass, arrays, and whatever JSON and MessagePack can say."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from msx_sdk import Handler


@dataclasses.dataclass
class Point:
    x: int
    label: str = ""


@dataclasses.dataclass
class Query:
    text: str
    top: Annotated[int, Meta(ge=1)] = 1
    points: list[Point] = dataclasses.field(default_factory=list)
    rows: NDArray[np.float32] | None = None
    extra: Any = None


class Found(msgspec.Struct):
    text: str
    points: list[Point]
    rows: np.ndarray | None
    extra: Any


class Finds(Handler):
    example = Query("warm", rows=np.ones(2, np.float32))

    def inference(self, inputs: list[Query]) -> list[Found]:
        return [Found(one.text.upper(), one.points, one.rows, one.extra) for one in inputs]
