"""Messages about wrong values, which name the parameter and its limit."""

import re

import msgspec

_PLACE = re.compile(r" - at .*?`\$\.?(?P<path>[^`]*)`$")


def wrong_value(error: msgspec.DecodeError) -> tuple[str, str]:
    """The path of the value, "" for the whole, and the expectation: `("stop[0]", "expected `str`, got `int`")`."""
    text = str(error)
    place = _PLACE.search(text)
    expected = text[: place.start()] if place else text
    path = place["path"].replace("[...]", "[]") if place else ""
    return path, f"{expected[:1].lower()}{expected[1:]}"
