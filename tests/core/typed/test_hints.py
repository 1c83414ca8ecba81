"""Which hints make a handler typed, and which are left alone."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from msx_core.json_schema import subschemas
from msx_core.resolve import resolve_object
from msx_core.typed.functions import with_types
from msx_core.typed.schemas import ARRAY, is_closed, schema_of
from msx_sdk import Context, Handler, HandlerLoadError
from tests.core.typed.models import Found, Model, OfDataclass, OfPydantic, OfRows, Point, Query, Rows, of_function

if TYPE_CHECKING:
    from decimal import Decimal as Unknown


@dataclasses.dataclass
class Odd:
    """Two dataclasses cannot be told apart in a body."""

    either: Point | Query


class OfOdd(Handler):
    def inference(self, inputs: list[Odd]) -> Any:
        return inputs


def names(handler: Any) -> tuple[str, bool]:
    """The type of requests, and whether replies have a schema."""
    typed = resolve_object(handler).typed
    return (typed[""].name, typed[""].info.reply_schema is not None) if typed else ("", False)


class OwnPreprocess(Handler):
    def preprocess(self, data: Any) -> Any:
        return data

    def inference(self, inputs: list[Query]) -> list[Found]:
        return []

    def postprocess(self, outputs: Any) -> Any:
        return outputs


class TypedSteps(Handler):
    def preprocess(self, data: list[Query]) -> Any:
        return data

    def postprocess(self, outputs: Any) -> list[Found]:
        return []


class WithinTheClass(Handler):
    class Own(Query):
        pass

    def inference(self, inputs: list[Own]) -> Any:
        return inputs


class Unresolved(Handler):
    def inference(self, inputs: list[Unknown]) -> list[Unknown]:
        return inputs


class TorchServes:
    def initialize(self, context: Context) -> None: ...

    def inference(self, data: list[Query]) -> list[Found]:
        return []

    def handle(self, data: Any, context: Context) -> Any: ...


def plain(data: list[dict[str, Any]], context: Context) -> list[str]:
    return []


def untyped(data: Any, context: Any) -> Any: ...


def of_sequences(data: Sequence[Query], context: Context) -> Iterator[list[Found]]:
    yield []


def generates(data: list[Query | None], context: Context) -> Generator[list[Found], None, None]:
    yield []


async def of_async(data: list[Query], context: Context) -> AsyncIterator[list[Found]]:
    yield []


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (OfDataclass, ("Query", True)),
        (OfRows, ("Rows", True)),
        (OfPydantic, ("Model", True)),
        (of_function, ("Query", True)),
        (TypedSteps, ("Query", True)),
        (WithinTheClass, ("Own", False)),
        (of_sequences, ("Query", True)),
        (generates, ("Query", True)),
        (of_async, ("Query", True)),
        (OwnPreprocess, ("", False)),
        (Unresolved, ("", False)),
        (TorchServes, ("", False)),
        (Handler, ("", False)),
        (plain, ("", False)),
        (untyped, ("", False)),
    ],
)
def test_which_hints_count(handler: Any, expected: tuple[str, bool]) -> None:
    assert names(handler) == expected


def test_a_type_that_no_body_can_have() -> None:
    with pytest.raises(HandlerLoadError, match=r"OfOdd.inference\(\) takes Odd, which cannot be read from JSON"):
        _ = resolve_object(OfOdd).typed


def test_the_schemas() -> None:
    (method,) = with_types((), resolve_object(OfRows).typed)
    assert method.request_schema is not None
    values = method.request_schema["$defs"]["Rows"]["properties"]["rowValues"]
    assert (method.name, values["description"]) == ("", ARRAY)
    right: list[Any] = [[[1, 2.5], [True]], [], 0.5, True]
    wrong: list[Any] = ["a", None, {}]
    assert [Draft202012Validator(values).is_valid(one) for one in right + wrong] == [True] * 4 + [False] * 3
    assert all("items" in one for _, one in subschemas(method.request_schema) if one.get("type") == "array")
    pydantics = schema_of(Model)
    assert pydantics is not None
    assert pydantics["properties"]["top"] == {"default": 1, "minimum": 1, "title": "Top", "type": "integer"}


@pytest.mark.parametrize(
    ("kind", "closed"), [(Point, True), (Rows, True), (Query, False), (dict[str, Any], False), (list, False)]
)
def test_which_types_bound_their_depth(kind: Any, closed: bool) -> None:
    schema = schema_of(kind)
    assert schema is not None
    assert is_closed(schema) is closed


def test_a_type_within_itself_does_not() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/B"}}}}
    assert is_closed(schema | {"$defs": {**schema["$defs"], "B": {"type": "integer"}}})  # type: ignore[dict-item]
    assert not is_closed(schema | {"$defs": {**schema["$defs"], "B": {"anyOf": [{"$ref": "#/$defs/A"}]}}})  # type: ignore[dict-item]
