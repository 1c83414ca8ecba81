"""Find docstrings that begin as a fragment, like "What the client sent", "Of a reply" and "From bytes to a value"."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDERS = ("sdk", "archiver", "backend", "frontend", "compat", "benchmarks", "scripts", "examples", "tests")
WORDS = "What|Of|Those|That"
PREPOSITIONS = (
    "Above|Against|Among|At|Behind|Below|Beside|Between|By|During|For|From|In|Into|On|Over|Per|Through|To|Under|With|"
    "Within|Without"
)
FRAGMENT = re.compile(rf"\s*({WORDS}|{PREPOSITIONS})\b(?!-)")
FRAGMENT_OF_TESTS = re.compile(rf"\s*({WORDS})\b(?!-)")
"""A test's docstring goes on from its name, and may begin with a preposition."""
TESTS = "tests"


def fragments(path: Path) -> list[str]:
    """Return `file:line: first line` of each module, class, function and attribute docstring that is a fragment."""
    statements = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Expr))
    fragment = FRAGMENT_OF_TESTS if path.parts[0] == TESTS else FRAGMENT
    texts = ((node.lineno, node.value.value) for node in statements if isinstance(node.value, ast.Constant))
    return [
        f"{path}:{line}: {text.strip().splitlines()[0]}"
        for line, text in texts
        if isinstance(text, str) and fragment.match(text)
    ]


def main(folders: Sequence[str]) -> int:
    paths = [path for folder in folders or FOLDERS for path in sorted(Path(folder).rglob("*.py"))]
    found = [each for path in paths for each in fragments(path)]
    for each in found:
        print(each)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
