"""What is known of a model's bodies: from the type hints of its handler, else from its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msx_frontend.models.shared_schemas import Schema, SharedSchemas
from msx_frontend.models.tensor_schemas import request_schema, response_schema
from msx_sdk._internal.methods import MethodInfo
from msx_sdk.kserve import Signature

JSON_TYPE, MSGPACK_TYPE = "application/json", "application/msgpack"
_ANY: Schema = {"*/*": {"schema": {}}}


class BodySchemas(NamedTuple):
    """Of one method; "" is the handler's own `handle`. A schema is None where any body will do."""

    method: str
    request: Schema | None
    reply: Schema | None
    typed: bool
    """The handler's types say so: there are no other bodies than JSON and MessagePack."""
    summary: str = ""


def body_schemas(signature: Signature | None, methods: Sequence[MethodInfo] | None) -> Iterator[BodySchemas]:
    """Of the methods of which something is known."""
    named = {one.name: one for one in methods or () if one.name or one.request_schema or one.reply_schema}
    if "" not in named and signature is not None and (signature.inputs or signature.outputs):
        yield BodySchemas("", request_schema(signature), response_schema(signature), typed=False)
    for one in named.values():
        known = one.request_schema is not None or one.reply_schema is not None
        yield BodySchemas(one.name, one.request_schema, one.reply_schema, known, one.summary)


def bodies(schemas: BodySchemas, shared: SharedSchemas, prefix: str) -> tuple[Schema, Schema]:
    """The content of a request and of a reply, as OpenAPI has it. `prefix` begins the names of shared schemas."""
    return (
        _content(schemas.request, schemas, shared, f"{prefix}Request"),
        _content(schemas.reply, schemas, shared, f"{prefix}Reply"),
    )


def _content(schema: Schema | None, schemas: BodySchemas, shared: SharedSchemas, prefix: str) -> Schema:
    if schema is None:
        return _ANY
    made = {JSON_TYPE: {"schema": shared.share(schema, prefix)}}
    return {**made, MSGPACK_TYPE: made[JSON_TYPE]} if schemas.typed else {**made, **_ANY}
