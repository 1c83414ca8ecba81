"""Types that the tests of this folder share, and a handler for each family."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import msgspec
import numpy as np
import pydantic
from msgspec import Meta
from numpy.typing import NDArray

from msx_sdk import Context, Handler


@dataclasses.dataclass
class Point:
    x: int
    label: str = ""


@dataclasses.dataclass
class Query:
    text: str
    top: Annotated[int, Meta(ge=1)] = 1
    points: list[Point] = dataclasses.field(default_factory=list)
    extra: Any = None


class Found(msgspec.Struct, omit_defaults=True):
    text: str
    points: list[Point] = []
    extra: Any = None


class Rows(msgspec.Struct, rename="camel"):
    row_values: NDArray[np.float32]
    raw_bytes: bytes = b""


class Model(pydantic.BaseModel):
    text: str
    top: int = pydantic.Field(default=1, ge=1)
    points: list[Point] = []
    extra: Any = None


class OfDataclass(Handler):
    example = Query("warm")

    def __init__(self) -> None:
        self.calls: list[list[Query]] = []

    def inference(self, inputs: list[Query]) -> list[Found]:
        self.calls.append(inputs)
        return [Found(one.text * min(one.top, 10), one.points, one.extra) for one in inputs]


class OfRows(Handler):
    def inference(self, inputs: list[Rows]) -> list[Rows]:
        return [Rows(one.row_values * 2, one.raw_bytes) for one in inputs]


class OfPydantic(Handler):
    example = {"text": "warm"}

    def inference(self, inputs: list[Model]) -> list[Model]:
        return inputs


def of_function(data: list[Query], context: Context) -> list[Found | Exception]:
    return [ValueError("no text") if not one.text else Found(one.text) for one in data]
