"""Metadata by key, each value of the type that is expected."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from msx_core.gguf.errors import GgufError


class Metadata:
    """All methods raise GgufError, which names the key."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def keys(self) -> list[str]:
        return [*self._values]

    def plain(self, key: str) -> Any:
        return self._values.get(key)

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number from 1 on."""
        value = self._given(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self._wrong(key, value, "a whole number above 0")
        return value

    def token(self, key: str, tokens: int) -> int | None:
        """The number of a token; None: there is none."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < tokens:
            raise self._wrong(key, value, f"one of the {tokens} tokens")
        return value

    def amount(self, key: str, default: float | None = None) -> float:
        """A finite number above 0."""
        value = self._given(key, default)
        if not isinstance(value, float | int) or isinstance(value, bool) or not isfinite(value) or value <= 0:
            raise self._wrong(key, value, "a number above 0")
        return value

    def number(self, key: str) -> float:
        """A finite number."""
        value = self._given(key, None)
        if not isinstance(value, float | int) or isinstance(value, bool) or not isfinite(value):
            raise self._wrong(key, value, "a number")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._given(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, value, "true or false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self._given(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, value, "a text")
        return value

    def list(self, key: str, kind: type, length: int | None = None) -> list[Any]:
        value = self._given(key, None)
        if not isinstance(value, list) or not all(isinstance(one, kind) for one in value):
            raise self._wrong(key, value, f"a list of {kind.__name__}")
        if length is not None and len(value) != length:
            raise GgufError(f"{key} has {len(value):,} entries for {length:,} tokens")
        return value

    def _given(self, key: str, default: Any) -> Any:
        value = self._values.get(key, default)
        if value is None:
            raise GgufError(f"it has no {key}, which is needed")
        return value

    def _wrong(self, key: str, value: object, wanted: str) -> GgufError:
        shown = str(value)
        return GgufError(f"{key}: {shown if len(shown) <= 40 else f'{shown[:37]}...'} is not {wanted}")
