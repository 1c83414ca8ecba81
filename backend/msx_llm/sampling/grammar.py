"""Translates a request's constraint to llguidance's notation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from llguidance import LLMatcher

from msx_core.json_schema import MOST_LEVELS, too_deep
from msx_llm.sampling.regex import with_ascii_classes
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import Constraint

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

JSON_OPTIONS: JsonCompileOptions = {"whitespace_pattern": r"[ \t]{1,40}|\r?\n[ \t]{0,40}", "lenient": True}
"""JSON in one line or indented. With whitespace unlimited, some models never write anything else. Lenient: schemas as
pydantic and OpenAPI write them have keywords that no grammar can hold, and formats that are annotations."""


def grammar(constraint: Constraint) -> str:
    """Raises InvalidInput for a value of the wrong form. Other errors are found when it is compiled."""
    match constraint.kind:
        case "json_object":
            return LLMatcher.grammar_from_json_schema({"type": "object"}, defaults=JSON_OPTIONS)
        case "json_schema":
            return LLMatcher.grammar_from_json_schema(_schema(constraint.value), defaults=JSON_OPTIONS)
        case "regex":
            return LLMatcher.grammar_from_regex(with_ascii_classes(_text(constraint)))
        case "choice":
            return LLMatcher.grammar_from_lark(
                "start: " + " | ".join(json.dumps(text) for text in _choices(constraint))
            )
        case "lark":
            return LLMatcher.grammar_from_lark(_text(constraint))


def _text(constraint: Constraint) -> str:
    if not constraint.value:
        raise InvalidInput(f"constraint: the {constraint.kind} is empty")
    return constraint.value


def _schema(value: str) -> str:
    """The schema as text: the compiler reads numbers of any size in it."""
    schema = _json(value, "json_schema")
    if schema is True:
        return "{}"
    if not isinstance(schema, dict):
        raise InvalidInput("constraint: the json_schema is not a JSON object")
    if too_deep(schema):
        raise InvalidInput(f"constraint: the json_schema is nested more than {MOST_LEVELS} levels deep")
    return value


def _choices(constraint: Constraint) -> list[str]:
    choices = _json(constraint.value, "choice")
    if not isinstance(choices, list) or not choices or not all(isinstance(it, str) and it for it in choices):
        raise InvalidInput("constraint: the choice is not a JSON list of one or more texts, none of them empty")
    return choices


def _json(value: str, kind: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"constraint: the {kind} is not JSON ({error})") from None
