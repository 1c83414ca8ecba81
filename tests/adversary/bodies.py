"""Bodies of requests: what a schema or a descriptor says of them, and what is wrong with others."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from msx_net.grpc.messages import POOL
from msx_net.http.family import JsonSchema
from tests.raw_grpc import framed

Schema = Mapping[str, Any]
DEPTH = 3
"""Depth of messages in messages."""
NESTED = 10_000
BOMB = gzip.compress(bytes(32 << 20))
WRONG: tuple[Any, ...] = (None, True, -1, 1e308, "", "x", [], [[]], {}, {"": None}, 10**30)


def schema_of(schema: JsonSchema | type[msgspec.Struct] | None, queries: tuple[tuple[str, str], ...] = ()) -> Schema:
    """The schema, with what it refers to below `$defs`; of a route without one, that of its query parameters."""
    if schema is None:
        return {"type": "object", "properties": {name: {"type": kind} for name, kind in queries}} if queries else {}
    return schema if isinstance(schema, Mapping) else _inlined(msgspec.json.schema(schema))


def _inlined(schema: dict[str, Any]) -> Schema:
    """Its own members, where it is a reference to one of its definitions."""
    own = schema.get("$ref", "").removeprefix("#/$defs/")
    return {**schema["$defs"][own], "$defs": schema["$defs"]} if own else schema


def wrong_bodies(body: bytes, schema: Schema) -> Iterator[tuple[bytes, dict[str, str]]]:
    """Bodies made from a good one, each with further headers."""
    whole = random.Random(0)
    for at in {whole.randrange(len(body) + 1) for _ in range(3)}:
        yield body[:at], {}
        yield body[:at] + whole.randbytes(3) + body[at:], {}
    for text in (b"", b"\0", b"\xff\xfe{}", b"null", b"[]", b'"x"', b"[" * NESTED, b'{"a":' * NESTED, b"1" * 5000):
        yield text, {}
    yield body, {"content-encoding": "gzip"}
    yield gzip.compress(body)[:-4], {"content-encoding": "gzip"}
    yield BOMB, {"content-encoding": "gzip"}
    yield body, {"content-encoding": "br, gzip"}
    for kind in ("multipart/form-data; boundary=b", "multipart/form-data", "application/x-www-form-urlencoded", "/"):
        yield body, {"content-type": kind}
    yield from ((one, {}) for one in _wrong_members(body, schema))


def _wrong_members(body: bytes, schema: Schema) -> Iterator[bytes]:
    """Each member that the schema knows, with a value of every kind."""
    try:
        good = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return
    if isinstance(good, dict):
        for name in {*good, *schema.get("properties", {})}:
            for value in WRONG:
                yield _encoded({**good, name: value})


def _encoded(value: Any) -> bytes:
    """By the library that writes integers of any size, too."""
    return json.dumps(value).encode()


def message(service: str, method: str, model: str, version: str) -> bytes:
    """A message of the method that names model and version, with its prefix. Empty where its class is not known."""
    try:
        found = POOL.FindServiceByName(service).methods_by_name[method]
    except KeyError:
        return framed(b"")
    made = GetMessageClass(found.input_type)()
    _fill(made, model, version, DEPTH)
    return framed(made.SerializeToString())


def _fill(made: Any, model: str, version: str, depth: int) -> None:
    for field in made.DESCRIPTOR.fields:
        if field.is_repeated:
            continue
        if field.name in ("model_name", "name"):
            setattr(made, field.name, model)
        elif "version" in field.name and field.type == FieldDescriptor.TYPE_STRING:
            setattr(made, field.name, version)
        elif field.type == FieldDescriptor.TYPE_MESSAGE and depth:
            _fill(getattr(made, field.name), model, version, depth - 1)
