"""Reads names of metrics and labels out of PromQL, as far as alert rules and dashboards need it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
RANGE = re.compile(r"\[[^\]]*\]")
SELECTOR = re.compile(r"\b([A-Za-z_:][\w:]*)\b\s*(?:\{([^}]*)\})?(?!\s*\()")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
WORDS = frozenset({"and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring", "inf", "nan"})


class Selector(NamedTuple):
    metric: str
    labels: frozenset[str]


def selectors(expression: str) -> Iterator[Selector]:
    bare = RANGE.sub("", GROUPING.sub("", STRING.sub('""', expression)))
    bare = re.sub(r"(?<![\w.])\d[\w.]*", "", bare)  # numbers and durations
    for name, matchers in SELECTOR.findall(bare):
        if name.lower() not in WORDS:
            yield Selector(name, frozenset(MATCHER.findall(matchers)))


def grouped(expression: str) -> set[str]:
    """Labels that sums and joins name."""
    found = GROUPING.findall(STRING.sub('""', expression))
    return {label.strip() for labels in found for label in labels.split(",") if label.strip()}
