"""Ollama's `options`, as members of a chat request."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from msx_core.generation.wire import MOST_INTEGER
from msx_core.validation import wrong_value
from msx_frontend.apis.ollama.request import AskedText
from msx_frontend.generation.errors import WrongParameter

TEMPERATURE = 0.8
"""Ollama's, where neither the request nor the model says one."""
NAMES = {
    "max_completion_tokens": "options.num_predict",
    "max_tokens": "options.num_predict",
    "repetition_penalty": "options.repeat_penalty",
    "response_format": "format",
    "constraint": "format",
    **{name: f"options.{name}" for name in ("temperature", "top_k", "top_p", "min_p", "typical_p", "stop", "seed")},
}
"""The client's names of the members of the chat request."""


class _Options(msgspec.Struct):
    """Options that a model reads. The others are about llama.cpp, or about the machine."""

    num_predict: int | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=MOST_INTEGER)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    typical_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    repeat_penalty: Annotated[float, Meta(gt=0)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None


def sampling_of(asked: AskedText) -> dict[str, Any]:
    """The members of a chat request. Raises WrongParameter."""
    try:
        options = msgspec.convert(asked.options or {}, _Options)
    except msgspec.ValidationError as error:
        name, expected = wrong_value(error)
        raise WrongParameter(f"options.{name}".rstrip("."), expected) from None
    given = msgspec.structs.asdict(options)
    most, penalty = given.pop("num_predict"), given.pop("repeat_penalty")
    return {
        **given,
        "max_completion_tokens": most if most is not None and most > 0 else None,  # -1 and -2 mean no limit
        "repetition_penalty": penalty,
        "stream": asked.stream,
        "response_format": _format(asked.format),
    }


def without_effect(options: dict[str, Any] | None, keep_alive: Any) -> list[str]:
    """The places of members that have no effect."""
    places = [f"options.{name}" for name in options or {} if name not in _Options.__struct_fields__]
    return [*places, *(["keep_alive"] if keep_alive is not None else [])]


def _format(asked: dict[str, Any] | str | None) -> dict[str, Any] | None:
    if asked is None or asked == "":
        return None
    if asked == "json":
        return {"type": "json_object"}
    if isinstance(asked, str):
        raise WrongParameter("format", f'expected "json" or a JSON schema, not {asked[:100]!r}')
    return {"type": "json_schema", "json_schema": {"name": "format", "schema": asked}}
