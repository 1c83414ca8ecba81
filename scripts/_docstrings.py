"""Find docstrings that begin as a fragment, like "What the client sent" and "Of a reply"."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDERS = ("sdk", "archiver", "backend", "frontend", "compat", "benchmarks", "scripts", "examples")
LEFT = {"sdk": 101, "archiver": 5, "compat": 50, "benchmarks": 62, "examples": 4}
"""Fragments that a folder may still have; a folder with fewer fails, too, until its number is lower here."""
FRAGMENT = re.compile(r"\s*(What|Of|Those|That)\b")


def fragments(path: Path) -> list[str]:
    """Return `file:line: first line` of each module, class, function and attribute docstring that is a fragment."""
    statements = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Expr))
    texts = ((node.lineno, node.value.value) for node in statements if isinstance(node.value, ast.Constant))
    return [
        f"{path}:{line}: {text.strip().splitlines()[0]}"
        for line, text in texts
        if isinstance(text, str) and FRAGMENT.match(text)
    ]


def main(folders: Sequence[str]) -> int:
    wrong = 0
    for folder in folders or FOLDERS:
        found = [each for path in sorted(Path(folder).rglob("*.py")) for each in fragments(path)]
        if len(found) != LEFT.get(folder, 0):
            print(*found, f"{folder}: {len(found)} docstrings are fragments, not {LEFT.get(folder, 0)}", sep="\n")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
