"""The functions of the subset: those of Go's templates, of sprig and of Helm that deploy/helm uses."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import yaml


def truth(value: Any) -> bool:
    """Go's: false, 0, nil and what is empty are false."""
    return bool(value)


def printed(value: Any) -> str:
    """As `{{ }}` prints it. A number of values.yaml is a float64 there."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _float(value)
    if value is None:
        return ""
    if isinstance(value, (Mapping, list)):
        raise TypeError(f"{value!r} would be printed as Go prints maps and lists: use toYaml")
    return str(value)


def _float(value: float) -> str:
    """The shortest digits, from 1e+06 on with an exponent."""
    exponent = math.floor(math.log10(abs(value))) if value else 0
    if -4 <= exponent < 6:
        return repr(value).removesuffix(".0")
    mantissa, _, power = f"{value:.15e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{power[0]}{int(power[1:]):02d}"


def plain(value: Any) -> Any:
    """Numbers as JSON has them, through which Helm's toYaml goes: 6553500, not 6.5535e+06."""
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_yaml(value: Any) -> str:
    return (
        str(yaml.safe_dump(plain(value), default_flow_style=False, sort_keys=True, width=10**6))
        .removesuffix("\n")
        .removesuffix("\n...")
    )


def _indented(width: int, text: str) -> str:
    return "\n".join(" " * width + line for line in text.split("\n"))


def _quoted(value: Any) -> str:
    return '"' + printed(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _formatted(form: str, *values: Any) -> str:
    parts = form.replace("%q", "%s").split("%s")
    verbs = [form[at + 1] for at in range(len(form) - 1) if form[at] == "%"]
    if set(verbs) - {"s", "q"} or len(verbs) != len(values):
        raise ValueError(f"printf {form!r}: only %s and %q, one for each value")
    shown = [_quoted(value) if verb == "q" else printed(value) for verb, value in zip(verbs, values, strict=True)]
    return "".join(text for pair in zip(parts, [*shown, ""], strict=True) for text in pair)


def _kind_is(kind: str, value: Any) -> bool:
    kinds = {str: "string", bool: "bool", float: "float64", int: "int", list: "slice", dict: "map"}
    return kinds[type(value)] == kind


def _either(*values: Any) -> Any:
    return next((value for value in values if truth(value)), values[-1])


def _all(*values: Any) -> Any:
    return next((value for value in values if not truth(value)), values[-1])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda *values: sum(int(value) for value in values),
    "and": _all,
    "default": lambda usual, value: value if truth(value) else usual,
    "div": lambda value, by: int(value) // int(by),
    "eq": lambda one, other: one == other,
    "Files.Get": lambda root, name: root["Files"].get(name, ""),
    "kindIs": _kind_is,
    "nindent": lambda width, text: "\n" + _indented(width, text),
    "not": lambda value: not truth(value),
    "or": _either,
    "printf": _formatted,
    "quote": _quoted,
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "squote": lambda value: f"'{printed(value)}'",
    "toJson": lambda value: json.dumps(plain(value)),
    "toYaml": to_yaml,
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "trunc": lambda length, text: text[:length],
    "upper": lambda text: text.upper(),
}
