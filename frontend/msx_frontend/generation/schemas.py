"""The JSON schemas of a request: which of their keywords are not applied, and which are refused."""

from typing import Any, NamedTuple

import msgspec

from msx_core.generation import Constraint
from msx_core.json_schema import MOST_LEVELS, Schema, not_held, too_deep
from msx_frontend.generation.errors import WrongParameter


class Held(NamedTuple):
    """A schema that applies to a text, with its place in the request."""

    place: str
    schema: Schema
    strict: bool = False
    """The client would rather be refused than have a keyword ignored."""


def schema_of(place: str, value: Any) -> Schema:
    """A schema from an object, or from its text, which some clients send. Raises WrongParameter."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError) as error:
            raise WrongParameter(place, f"expected a JSON schema: {error}") from None
    if not isinstance(value, dict):
        raise WrongParameter(place, "expected a JSON schema, an object")
    if too_deep(value):
        raise WrongParameter(place, f"the schema is nested more than {MOST_LEVELS} levels deep")
    return value


def constraint(schema: Schema) -> Constraint:
    return Constraint(kind="json_schema", value=msgspec.json.encode(schema).decode())


def ignored(held: list[Held], keywords: tuple[str, ...]) -> list[str]:
    """The places of keywords that a grammar cannot hold. Raises WrongParameter for one in a schema that is strict."""
    places = []
    for place, schema, strict in held:
        paths = not_held(schema, keywords)
        if paths and strict:
            name = paths[0].rpartition(".")[2]
            raise WrongParameter(
                place + paths[0],
                f"a text cannot be held to {name}; leave it out, or send strict: false to have it ignored",
            )
        places += [place + path for path in paths]
    return places
