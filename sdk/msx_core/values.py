"""Types of values in the two configuration files, with names for error messages."""

import difflib
import reprlib
from collections.abc import Callable, Iterable
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta


class ConfigError(ValueError):
    """An impossible configuration: the message names the key, its value and what was expected."""


Switch = Annotated[bool, Meta(description="true or false")]
Count = Annotated[int, Meta(ge=0, description="an integer of 0 or more")]
Positive = Annotated[int, Meta(ge=1, description="an integer of 1 or more")]
Fraction = Annotated[float, Meta(gt=0, le=1, description="a number above 0, and at most 1")]
Seconds = Annotated[float, Meta(gt=0, le=1e9, description="a number of seconds above 0")]
Delay = Annotated[float, Meta(ge=0, le=1e6, description="a number of seconds of 0 or more")]
Amount = Annotated[float, Meta(gt=0, le=1e6, description="a number above 0")]
Text = Annotated[str, Meta(description="a text")]

Hook = Callable[[type, Any], Any]

# repr() of a value with nested YAML aliases can be gigabytes long.
_brief = reprlib.Repr()
_brief.maxlevel = 2
_brief.maxstring = _brief.maxother = 80


def show(value: Any) -> str:
    return _brief.repr(value)


def convert(key: str, value: Any, annotation: Any, *, strict: bool = True, hook: Hook | None = None) -> Any:
    """The value as the annotated type. Strict: `'8'` and `true` are not integers. Raises ConfigError."""
    try:
        return msgspec.convert(value, annotation, strict=strict, dec_hook=hook)
    except msgspec.ValidationError as exc:
        raise ConfigError(f"{key}: {show(value)} is not {_expectation(annotation)}") from exc


def _expectation(annotation: Any) -> str:
    return " or ".join(dict.fromkeys(_descriptions(annotation)))


def _descriptions(annotation: Any) -> Iterable[str]:
    for meta in getattr(annotation, "__metadata__", ()):
        yield meta.description
        return
    for part in get_args(annotation):
        yield from _descriptions(part)


def near_miss(key: str, known: Iterable[str]) -> str | None:
    """The known key that was probably meant: another spelling, or a typing error."""
    plain = {_plain(name): name for name in known}
    found = difflib.get_close_matches(_plain(key), plain, n=1, cutoff=0.88)
    return plain[found[0]] if found else None


def _plain(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "").replace(" ", "")
