"""Result of one check."""

from enum import Enum
from typing import NamedTuple


class Level(str, Enum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(NamedTuple):
    """`remedy` is a sentence; "" where nothing has to be done."""

    check: str
    level: Level
    found: str
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """Text with the remedy for a log, without its last full stop."""
        return f"{self.found}. {self.remedy}".rstrip(". ")


def ok(check: str, found: str) -> Finding:
    return Finding(check, Level.OK, found)


def warning(check: str, found: str, remedy: str) -> Finding:
    return Finding(check, Level.WARNING, found, remedy)


def failed(check: str, found: str, remedy: str) -> Finding:
    return Finding(check, Level.FAILED, found, remedy)
