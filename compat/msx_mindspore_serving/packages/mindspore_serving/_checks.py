"""Checks of arguments that all of MindSpore Serving's functions share, with its texts."""

from collections.abc import Iterable
from typing import Any


def check_str(name: str, value: object) -> None:
    """Raises RuntimeError unless the value is a text that is not empty."""
    if not isinstance(value, str):
        raise RuntimeError(f"Parameter '{name}' should be str, but actually {type(value)}")
    if not value:
        raise RuntimeError(f"Parameter '{name}' should not be empty str")


def check_bool(name: str, value: object) -> None:
    """Raises RuntimeError."""
    if not isinstance(value, bool):
        raise RuntimeError(f"Parameter '{name}' should be bool, but actually {type(value)}")


def check_int(name: str, value: Any, least: int | None = None, most: int | None = None) -> None:
    """A bool is not an int. Raises RuntimeError."""
    if not _is_int(value):
        raise RuntimeError(f"Parameter '{name}' should be int, but actually {type(value)}")
    if least is not None and most is not None:
        if not least <= value <= most:
            raise RuntimeError(f"Parameter '{name}' should be in range [{least},{most}]")
    elif least is not None and value < least:
        raise RuntimeError(f"Parameter '{name}' should be >= {least}")
    elif most is not None and value > most:
        raise RuntimeError(f"Parameter '{name}' should be <= {most}")


def as_ints(name: str, value: Any) -> tuple[int, ...]:
    """Check an int, or a tuple or list of different ints of 0 or more. Raises RuntimeError."""
    if _is_int(value):
        value = (value,)
    if not isinstance(value, tuple | list):
        raise RuntimeError(f"Parameter '{name}' should be int or tuple/list of int, but actually {type(value)}")
    seen: list[int] = []
    for item in value:
        _check_new(name, item, seen)
        if not _is_int(item):
            raise RuntimeError(
                f"The item value '{item}' in parameter '{name}' should be int, but actually {type(item)}"
            )
        if item < 0:
            raise RuntimeError(f"The item value '{item}' in parameter '{name}' should be >= 0")
        seen.append(item)
    return tuple(seen)


def as_strs(name: str, value: Any) -> tuple[str, ...]:
    """Check a text, or a tuple or list of different texts that are not empty. Raises RuntimeError."""
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, tuple | list):
        raise RuntimeError(f"Parameter '{name}' should be str or tuple/list of str, but actually {type(value)}")
    seen: list[str] = []
    for item in value:
        if not isinstance(item, str):
            raise RuntimeError(f"The item of parameter '{name}' should be str, but actually {type(item)}")
        if not item:
            raise RuntimeError(f"The item of parameter '{name}' should not be empty str")
        _check_new(name, item, seen)
        seen.append(item)
    return tuple(seen)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_new(name: str, item: object, seen: Iterable[object]) -> None:
    if item in seen:
        raise RuntimeError(f"The item value '{item}' in parameter '{name}' should not be repeated")
