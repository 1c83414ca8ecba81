"""The way from the target of a request to servable, version and method."""

import re

from msx_mindspore_serving.family.errors import ServingError, Spec, quoted

LARGEST_VERSION = 4294967294

_GRAMMAR = re.compile(
    r"/(?:model/(?P<name>[^/:]+)(?:/version/(?P<version>[^/:]+))?"
    r"|version/(?P<version_before>[^/:]+)/model/(?P<name_behind>[^/:]+)):(?P<method>.+)",
    re.DOTALL,
)
_DIGITS = re.compile(r"[+-]?[0-9]+")


def parse_target(target: str) -> Spec:
    """`target` is what the client sent: nothing is decoded, and a query belongs to the method. Other parts of a path
    are ignored, as MindSpore Serving does. Raises ServingError.
    """
    if (match := _GRAMMAR.fullmatch(target)) is not None:
        found = match.groupdict()
        version = found["version"] or found["version_before"]
        return Spec(found["name"] or found["name_behind"], found["method"], _number(version))
    name = _word_behind(target, "model")
    if not name:
        raise ServingError("please check url, the keyword:[model] must contain.")
    version = _number(_word_behind(target, "version"))
    method = target.partition(":")[2]
    if not method:
        raise ServingError("please check url, the keyword:[service method] must contain.")
    return Spec(name, method, version)


def _word_behind(target: str, keyword: str) -> str | None:
    """Text after the first keyword and one letter, up to a slash or colon; None without the keyword."""
    _, found, behind = target.partition(keyword)
    return re.split("[/:]", behind[1:], maxsplit=1)[0] if found else None


def _number(text: str | None) -> int:
    """Raises ServingError."""
    if text is None:
        return 0
    match = _DIGITS.match(text)
    if match is None:
        raise ServingError(
            f"please check url, the keyword:[version] value invalid, request version number {quoted(text)}"
        )
    if len(match[0]) > len(str(LARGEST_VERSION)) + 1 or not 0 <= int(match[0]) <= LARGEST_VERSION:
        raise ServingError(f"please check url, version number range failed, request version number {quoted(text)}")
    return int(match[0])
