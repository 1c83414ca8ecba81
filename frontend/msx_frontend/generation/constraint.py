"""The form that a text must have: OpenAI's response_format, and vLLM's parameters for the same."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from msx_core.generation import Capabilities, Constraint
from msx_frontend.generation import schemas
from msx_frontend.generation.errors import WrongParameter


class StructuredOutputs(msgspec.Struct):
    """vLLM's parameter."""

    json: dict[str, Any] | str | None = None
    json_object: bool = False
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None


class ConstraintFields(Protocol):
    """Members of a request, of which at most one may be given."""

    response_format: dict[str, Any] | None
    structured_outputs: StructuredOutputs | None
    guided_json: dict[str, Any] | str | None
    guided_regex: str | None
    guided_choice: list[str] | None
    guided_grammar: str | None


_members = attrgetter(
    "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar"
)
_NOTHING = (None,) * 6
"""Values of most requests, which have no such constraint."""


def constraint_name(fields: ConstraintFields) -> str | None:
    """The place of the constraint's own value, if there is one."""
    if _members(fields) == _NOTHING:
        return None
    try:
        name = next((name for name, _ in _constraints(fields)), None)
    except WrongParameter:  # told by `constraint_of`
        return None
    if name == "response_format" and fields.response_format is not None:
        return f"{name}.json_schema.schema" if "json_schema" in fields.response_format.values() else name
    return name


def constraint_of(fields: ConstraintFields, offered: Capabilities) -> Constraint | None:
    """Raises WrongParameter for two that differ (guidance sends one by both of vLLM's names), for a malformed one, and
    for one that the model cannot keep to."""
    if _members(fields) == _NOTHING:
        return None
    found = list(_constraints(fields))
    if not found:
        return None
    name, constraint = found[0]
    if other := next((other for other, one in found if one != constraint), None):
        raise WrongParameter(other, f"not together with {name}: the text can keep to one of them")
    check_offered(name, constraint, offered)
    return constraint


def check_offered(name: str, constraint: Constraint, offered: Capabilities) -> None:
    if constraint.kind not in offered.constraints:
        able = ", ".join(offered.constraints) or "none"
        raise WrongParameter(
            name, f"the model cannot keep to a constraint of the kind {constraint.kind} (it can: {able})"
        )


def response_format(name: str, value: dict[str, Any]) -> Constraint | None:
    """OpenAI's `json_schema` in both its forms, `json_object`, and TGI's types with a `value`."""
    kind = value.get("type")
    if kind == "text":
        return None
    if kind == "json_schema":
        return schemas.constraint(_schema_of_format(name, value).schema)
    if kind in ("json_object", "json"):
        schema = value.get("value")
        return Constraint(kind="json_object") if schema is None else _schema(f"{name}.value", schema)
    if kind == "regex":
        return Constraint(kind="regex", value=_text(f"{name}.value", value.get("value")))
    raise WrongParameter(f"{name}.type", f"expected text, json_object or json_schema, not {kind!r}")


def _constraints(fields: ConstraintFields) -> Iterator[tuple[str, Constraint]]:
    if fields.response_format is not None and (found := response_format("response_format", fields.response_format)):
        yield "response_format", found
    outputs = fields.structured_outputs or StructuredOutputs()
    if outputs.json_object:
        yield "structured_outputs.json_object", Constraint(kind="json_object")
    for place, schema in (("structured_outputs.json", outputs.json), ("guided_json", fields.guided_json)):
        if schema is not None:
            yield place, _schema(place, schema)
    for place, choices in (("structured_outputs.choice", outputs.choice), ("guided_choice", fields.guided_choice)):
        if choices is not None:
            yield place, _choice(place, choices)
    for place, regex in (("structured_outputs.regex", outputs.regex), ("guided_regex", fields.guided_regex)):
        if regex is not None:
            yield place, Constraint(kind="regex", value=_text(place, regex))
    for place, lark in (("structured_outputs.grammar", outputs.grammar), ("guided_grammar", fields.guided_grammar)):
        if lark is not None:
            yield place, Constraint(kind="lark", value=_text(place, lark))


def held_by_format(name: str, value: dict[str, Any]) -> list[schemas.Held]:
    """The schema of a format, if it has one."""
    if value.get("type") == "json_schema":
        return [_schema_of_format(name, value)]
    inner = value.get("value") if value.get("type") in ("json_object", "json") else None
    return [] if inner is None else [schemas.Held(f"{name}.value", schemas.schema_of(f"{name}.value", inner))]


def held_schemas(fields: ConstraintFields) -> list[schemas.Held]:
    """The schemas that apply to the text. Raises WrongParameter."""
    if _members(fields) == _NOTHING:
        return []
    if fields.response_format is not None:
        return held_by_format("response_format", fields.response_format)
    outputs = fields.structured_outputs or StructuredOutputs()
    places = (("structured_outputs.json", outputs.json), ("guided_json", fields.guided_json))
    return [schemas.Held(place, schemas.schema_of(place, value)) for place, value in places if value is not None]


def _schema_of_format(name: str, value: dict[str, Any]) -> schemas.Held:
    """The schema: OpenAI's in `json_schema` or, for responses, beside the type; TGI's in `value`."""
    inner = value.get("json_schema", value.get("value", value))
    inner = inner if isinstance(inner, dict) else {}
    place = f"{name}.json_schema.schema"
    return schemas.Held(place, schemas.schema_of(place, inner.get("schema")), inner.get("strict") is True)


def _schema(name: str, value: Any) -> Constraint:
    return schemas.constraint(schemas.schema_of(name, value))


def _choice(name: str, choices: list[str]) -> Constraint:
    if not choices or "" in choices:
        raise WrongParameter(name, "expected at least one text, and none that is empty")
    return Constraint(kind="choice", value=msgspec.json.encode(choices).decode())


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise WrongParameter(name, "expected a text of at least one character")
    return value
