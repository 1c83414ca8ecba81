"""The members of a `quantization_config`, of which each value that is not known is refused."""

from collections.abc import Mapping
from typing import Any

from msx_llm.models.members import FILE, shortened
from msx_sdk.errors import HandlerLoadError

MOST_NAMES = 10_000


class GivenMembers:
    """All methods raise HandlerLoadError, which names the member, its value and what is accepted."""

    def __init__(self, given: Mapping[str, Any], place: str = "quantization_config") -> None:
        self.given, self.place = given, place

    def only(self, name: str, *accepted: Any, default: Any = None, other: str = "", case: bool = True) -> Any:
        """One of the accepted values; `other` is an older name of the member."""
        value = self.given.get(name, self.given.get(other, default))
        found = value.lower() if isinstance(value, str) and not case else value
        if not any(type(found) is type(it) and found == it for it in accepted):
            raise self.wrong(name, value, f"is not supported; {' and '.join(map(_shown, accepted))} can be read")
        return found

    def flag(self, name: str, default: bool) -> bool:
        value = self.given.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, value, "is not true or false")
        return value

    def absent(self, *names: str) -> None:
        for name in names:
            if value := self.given.get(name):
                raise self.wrong(name, value, "is not supported: all layers must be quantised alike; leave it out")

    def group(self, name: str, default: int | None, other: str = "") -> int | None:
        """How many inputs share a scale; None: all, which files write as -1."""
        value = self.given.get(name, self.given.get(other, default))
        if value in (-1, None):
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 2 or value % 2:
            raise self.wrong(name, value, "is not an even number of inputs, or -1 for all of them")
        return value

    def names(self, name: str) -> list[str]:
        value = self.given.get(name) or []
        if not isinstance(value, list) or not all(isinstance(it, str) for it in value) or len(value) > MOST_NAMES:
            raise self.wrong(name, value, f"is not a list of at most {MOST_NAMES} names of layers")
        return value

    def wrong(self, name: str, value: object, why: str) -> HandlerLoadError:
        return HandlerLoadError(f"{FILE}, {self.place}.{name}: {_shown(value)} {why}")


def _shown(value: object) -> str:
    return shortened(str(value).lower() if isinstance(value, bool) else "missing" if value is None else str(value))
