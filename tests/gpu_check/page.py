"""One page in Markdown: what was checked, with which result, and the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
HEAD = ("| check | result | figures |", "|---|---|---|")


class NotRunError(Exception):
    """A check that this machine cannot answer; the message says why."""


class FailedError(Exception):
    """A check has found something else than it should have; the message says what."""


@dataclass(frozen=True)
class Outcome:
    check: str
    result: str
    figures: str

    def row(self) -> str:
        return f"| {self.check} | {self.result} | {_in_a_cell(self.figures)} |"


PASSED, FAILED, NOT_RUN = "passed", "**failed**", "not run"


def tried(name: str, check: Callable[[T], str], subject: T) -> Outcome:
    """The outcome of a check, which returns its figures; whatever it raises is in its row, and the page goes on."""
    try:
        return Outcome(name, PASSED, check(subject))
    except NotRunError as why:
        return Outcome(name, NOT_RUN, str(why))
    except FailedError as why:
        return Outcome(name, FAILED, str(why))
    except Exception as error:  # a server, a driver or torch may raise anything
        return Outcome(name, FAILED, f"{type(error).__name__}: {error}")


def expect(found: object, wanted: object, what: str) -> None:
    """Raises FailedError."""
    if found != wanted:
        raise FailedError(f"{what}: {found!r} where {wanted!r} is right")


def summary(outcomes: Sequence[Outcome]) -> str:
    counts = [(sum(one.result == result for one in outcomes), result) for result in (PASSED, FAILED, NOT_RUN)]
    return ", ".join(f"{count} {result}" for count, result in counts)


def has_failed(outcomes: Sequence[Outcome]) -> bool:
    return any(outcome.result == FAILED for outcome in outcomes)


def _in_a_cell(text: str) -> str:
    """One line of at most 600 characters, in which nothing ends a cell."""
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= 600 else f"{line[:300]} … {line[-300:]}"
