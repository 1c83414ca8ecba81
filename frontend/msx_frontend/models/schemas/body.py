"""Schemas of a model's bodies: from the type hints of its handler, else from its tensors."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msx_core.kserve.types import Signature
from msx_core.methods import MethodInfo
from msx_frontend.models.schemas.examples import NoExample, example_of
from msx_frontend.models.schemas.shared import Schema, SharedSchemas
from msx_frontend.models.schemas.tensors import request_example, request_schema, response_schema

JSON_TYPE, MSGPACK_TYPE = "application/json", "application/msgpack"
BYTES: Schema = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
ANY_CONTENT: Schema = {JSON_TYPE: {"schema": {}}, **BYTES}
"""Content types of bodies that only the handler knows: any will do, and clients can be made for these two."""


class BodySchemas(NamedTuple):
    """Body schemas of one method; "" is the handler's own `handle`. A schema is None where any body will do."""

    method: str
    request: Schema | None
    reply: Schema | None
    typed: bool
    """The handler's types say so: there are no other bodies than JSON and MessagePack."""
    summary: str = ""
    example: Any = None
    """Example of a request; None: one is made from its schema."""


def body_schemas(signature: Signature | None, methods: Sequence[MethodInfo] | None) -> Iterator[BodySchemas]:
    """Body schemas of the methods of which something is known."""
    named = {one.name: one for one in methods or () if one.name or one.request_schema or one.reply_schema}
    if "" not in named and signature is not None and (signature.inputs or signature.outputs):
        yield tensor_bodies(signature)
    for one in named.values():
        known = one.request_schema is not None or one.reply_schema is not None
        yield BodySchemas(one.name, one.request_schema, one.reply_schema, known, one.summary)


def tensor_bodies(signature: Signature) -> BodySchemas:
    """Bodies in the Open Inference Protocol's form."""
    example = request_example(signature)
    return BodySchemas("", request_schema(signature), response_schema(signature), typed=False, example=example)


def bodies(schemas: BodySchemas, shared: SharedSchemas, prefix: str) -> tuple[Schema, Schema]:
    """The content of a request and of a reply, as OpenAPI has it. `prefix` begins the names of shared schemas."""
    request = _content(schemas.request, schemas, shared, f"{prefix}Request")
    if schemas.request is not None:
        request = {**request, JSON_TYPE: _with_example(request[JSON_TYPE], schemas, shared)}
    return request, _content(schemas.reply, schemas, shared, f"{prefix}Reply")


def _with_example(content: Schema, schemas: BodySchemas, shared: SharedSchemas) -> Schema:
    try:
        example = example_of(content["schema"], shared.schemas) if schemas.typed else schemas.example
    except NoExample:
        return content
    return content if example is None else {**content, "example": example}


def _content(schema: Schema | None, schemas: BodySchemas, shared: SharedSchemas, prefix: str) -> Schema:
    if schema is None:
        return ANY_CONTENT
    made = {JSON_TYPE: {"schema": shared.share(schema, prefix)}}
    return {**made, MSGPACK_TYPE: made[JSON_TYPE]} if schemas.typed else {**made, **BYTES}
