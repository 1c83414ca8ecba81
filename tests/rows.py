"""Rows of a page's tables, and the names of tests that a file defines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_CELL = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def rows(page: str) -> dict[str, list[str]]:
    """Beginnings of all rows, without backticks and links, by the heading above their table: the first cell, and the
    second where several rows of the table have the first one."""
    return {heading: _beginnings([_cells(line) for line in lines]) for heading, lines in _tables(page).items()}


def _tables(page: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    heading, fenced, table = "", False, 0
    for line in page.splitlines():
        fenced ^= line.startswith("```")
        table = table + 1 if line.startswith("|") and not fenced else 0
        if table > 2:  # below the heads of the columns and their line
            found.setdefault(heading, []).append(line)
        elif line.startswith("#") and not fenced:
            heading = line.lstrip("# ").replace("`", "")
    return found


def _cells(line: str) -> list[str]:
    return [_LINK.sub(r"\1", cell.replace("`", "").replace("\\|", "|").strip()) for cell in _CELL.split(line)[1:-1]]


def _beginnings(table: list[list[str]]) -> list[str]:
    firsts = [cells[0] for cells in table]
    return [" ".join(cells[: 1 + (firsts.count(cells[0]) > 1)]) for cells in table]


@cache
def named_tests(path: str) -> frozenset[str]:
    """Names as pytest writes them behind the file's path, without parameters; none where there is no such file."""
    file = ROOT / path
    if not (file.name.startswith("test_") and file.is_file()):
        return frozenset()
    return frozenset(_tests(ast.parse(file.read_text()).body))


def _tests(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for one in body:
        if isinstance(one, ast.ClassDef) and one.name.startswith("Test"):
            yield from _tests(one.body, f"{one.name}::")
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test_"):
            yield prefix + one.name
