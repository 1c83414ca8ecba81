"""Which format of metrics a client asks for (RFC 9110 §12.5.1)."""

from typing import NamedTuple

_OPENMETRICS, _PLAIN = "application/openmetrics-text", "text/plain"
_VERSIONS = {_OPENMETRICS: ("", "1.0.0"), _PLAIN: ("", "0.0.4")}
_MOST_RANGES = 100


class _Range(NamedTuple):
    type: str
    version: str
    weight: float


def wants_openmetrics(accept: str) -> bool:
    """OpenMetrics is named, and not with a lower weight than the text format. Wildcards mean the text format."""
    ranges = [_range(item) for item in accept.lower().split(",")[:_MOST_RANGES]]
    own = _weight(ranges, _OPENMETRICS)
    if own is None or own <= 0:
        return False
    found = (_weight(ranges, kind) for kind in (_PLAIN, "text/*", "*/*"))
    return own >= next((weight for weight in found if weight is not None), 0.0)


def _weight(ranges: list[_Range], kind: str) -> float | None:
    """The highest of those that name the type in a version that is there; None where none does."""
    versions = _VERSIONS.get(kind, ("",))
    return max((one.weight for one in ranges if one.type == kind and one.version in versions), default=None)


def _range(item: str) -> _Range:
    kind, *parameters = (part.strip() for part in item.split(";"))
    named = dict(_named(parameter) for parameter in parameters)
    try:
        weight = float(named.get("q", "1"))
    except ValueError:
        weight = 0.0
    return _Range(kind, named.get("version", ""), weight if 0 <= weight <= 1 else 0.0)


def _named(parameter: str) -> tuple[str, str]:
    name, _, value = parameter.partition("=")
    return name.strip(), value.strip().strip('"')
