"""Compares the reply to an example with the one that `expected:` of a model-config.yaml gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import msgspec

from msx_core.errors import HandlerLoadError
from msx_core.values import show

Path = tuple[Any, ...]
"""The keys and indices that lead to a value of a reply."""

_END: tuple[Path, Any] = (("the end of the reply",), None)


@dataclass(frozen=True)
class ExpectedReplies:
    """`replies` has one for each example. A number may differ by `tolerance` times the largest number of its output."""

    replies: list[Any]
    tolerance: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ExpectedReplies | None:
        """The section `expected:`; None without one."""
        if config.get("expected") is None:
            return None
        from msx_core.config import parse_model_config  # imports yaml, which tests of handlers need not

        keys = parse_model_config(config)[0]
        if keys.expected is None:
            return None
        return cls(keys.expected.outputs if keys.several_examples else [keys.expected.outputs], keys.expected.tolerance)

    def check(self, number: int, body: bytes) -> None:
        """Raises HandlerLoadError if the reply to the example of this number is another one."""
        wanted = self.replies[number]
        found = difference(_value(body, wanted), wanted, self.tolerance)
        if found:
            raise HandlerLoadError(
                f"the reply to example {number} is not the expected one: {found}. If the model is right, mend "
                "expected: in model-config.yaml; why a model may answer wrong is in docs/wrong-answers.md"
            )


def difference(given: Any, wanted: Any, tolerance: float) -> str:
    """The first value of a reply that is not the wanted one; "" if all are."""
    largest = _largest(wanted)
    for (path, value), (wanted_path, want) in zip_longest(_leaves(given), _leaves(wanted), fillvalue=_END):
        if path != wanted_path:
            return f"it has {_shown(path)} where {_shown(wanted_path)} is expected"
        if not _is_number(value) or not _is_number(want):
            if value != want:
                return f"{_shown(path)} is {show(value)}, expected {show(want)}"
        elif not abs(value - want) <= (allowed := tolerance * largest[_output(path)]):
            return f"{_shown(path)} is {value:.6g}, expected {want:.6g} (tolerance: {allowed:.3g})"
    return ""


def _value(body: bytes, wanted: Any) -> Any:
    """The reply as JSON; as text where that is expected, or where it is something else."""
    text = body.decode("utf-8", "replace")
    if isinstance(wanted, str) and text == wanted:
        return text
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return text


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All values that are not lists or mappings, and empty ones of these, in an order that does not depend on keys'."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value, key=str):
            yield from _leaves(value[key], (*path, str(key)))
    elif isinstance(value, list) and value:
        for idx, item in enumerate(value):
            yield from _leaves(item, (*path, idx))
    else:
        yield path, value


def _largest(wanted: Any) -> dict[str, float]:
    """The largest absolute number of each output; 1 where all are 0."""
    largest: dict[str, float] = {}
    for path, value in _leaves(wanted):
        if _is_number(value):
            name = _output(path)
            largest[name] = max(largest.get(name, 0.0), abs(value))
    return {name: value or 1.0 for name, value in largest.items()}


def _output(path: Path) -> str:
    """The output that a number belongs to: the member that holds a list, else the reply as a whole."""
    return path[0] if len(path) > 1 and isinstance(path[0], str) else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(path: Path) -> str:
    names = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    return names or "the reply"
