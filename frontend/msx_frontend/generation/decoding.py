"""The way from a request's body to the struct that its route takes."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from msx_core.elements import ElementLimit, TooManyElements, check_json
from msx_core.service_errors import MalformedJson
from msx_core.validation import wrong_value
from msx_frontend.generation.errors import WrongParameter

T = TypeVar("T")


_MISSING = re.compile("object missing required field `(?P<name>[^`]*)`")
_decoders: dict[Any, Callable[[bytes], Any]] = {}
"""Decoders by type, each made once: to find the decoder of a large struct takes longer than to decode most requests."""


def decode(body: bytes, kind: type[T], *, strict: bool = True) -> T:
    """Members that the struct does not have are ignored, as all servers of these APIs do. Without `strict`, which
    each type is always read with or without, texts may stand for numbers and booleans.

    Raises WrongParameter, which names the parameter and what was expected, and MalformedJson for what is not JSON.
    """
    try:
        if len(body) > ElementLimit.most:
            check_json(body)
        read = _decoders.get(kind) or _decoders.setdefault(kind, msgspec.json.Decoder(kind, strict=strict).decode)
        value: T = read(body)
        return value
    except TooManyElements as error:
        raise WrongParameter("request", str(error)) from None
    except msgspec.ValidationError as error:
        name, expected = wrong_value(error)
        if missing := _MISSING.fullmatch(expected):
            raise WrongParameter(f"{name}.{missing['name']}".lstrip("."), "needed, and missing") from None
        raise WrongParameter(name or "request", expected) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedJson(body, error) from None
