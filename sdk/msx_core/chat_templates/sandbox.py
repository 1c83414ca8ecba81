"""The sandbox of chat templates, which come with untrusted checkpoints."""

import json
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.meta import find_undeclared_variables
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from msx_core.failures import shortened

MAX_MESSAGE = 500


class GenerationTag(Extension):
    """`{% generation %}` marks the model's answers for training; here it renders its content."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def environment() -> ImmutableSandboxedEnvironment:
    """A Jinja environment with the functions that Hugging Face transformers gives to templates."""
    result = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", GenerationTag]
    )
    result.filters["tojson"] = _to_json
    result.globals.update(raise_exception=_raise, strftime_now=_now)
    return result


def variables_of(source: str) -> set[str]:
    """The variables that a template reads. Raises TemplateError for one that is not valid Jinja."""
    known = environment()
    return find_undeclared_variables(known.parse(source)) - known.globals.keys()


def failure_of(error: Exception) -> str:
    """The template's own message, or the error in it."""
    said = error.message if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
    return shortened(said or type(error).__name__, MAX_MESSAGE)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without HTML escapes: Jinja's own filter writes `<` as `\u003c`."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(format: str) -> str:
    return datetime.now().strftime(format)
