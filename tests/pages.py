"""The commands of the documentation's pages, the output that they show, and the files that they tell to write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$|^#+ [^\n]*$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^# ([\w.-]+\.\w+)$|.*`([\w.-]+\.\w+)`[^`]*:$")
"""Names a file: `# echo.py` as its own first line, or a line before it that has the name, and ends in a colon."""


@dataclass(frozen=True)
class Block:
    commands: tuple[str, ...]
    shown: str = ""
    """Output of the commands, as the page shows it."""


def pages() -> list[str]:
    """README, docs and the examples' READMEs, from the root."""
    found = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def blocks(page: str) -> list[Block]:
    """`console` has commands behind `$`, each with its output; `sh` has commands, and the next block without a language
    in the same section is the output of all of them."""
    found: list[Block] = []
    waiting = False
    for match in _FENCE.finditer(page):
        language, text = match[1], match[2]
        if language == "console":
            found += _console(text)
        elif language == "sh":
            found.append(Block(tuple(_logical_lines(text))))
        elif language == "" and text and waiting:
            found[-1] = Block(found[-1].commands, text)
        waiting = language == "sh"
    return found


def files(page: str) -> dict[str, str]:
    """Files that a reader is to write, by name."""
    found: dict[str, str] = {}
    for match in _FENCE.finditer(page):
        if match[1] in ("python", "yaml"):
            before = page[: match.start()].rstrip().rpartition("\n")[2]
            if named := _FILE.match(match[2].partition("\n")[0]) or _FILE.match(before):
                found[named[1] or named[2]] = match[2]
    return found


def shows(actual: str, shown: str) -> bool:
    """Whether the output has what the page shows of it, but for line ends and what differs from run to run: the folder
    of a path, numbers of three digits and more, sizes, times and shares; `…` is anything."""
    words = [_word(word) for word in _UNITS.sub("0\\1", shown).split()]
    return re.search(r"\s+".join(words), _UNITS.sub("0\\1", actual)) is not None


_UNITS = re.compile(r"\b[\d.,]+( ?)(?=(?:KiB|MiB|MB|ms|s|B|%)(?!\w))")
_VARIABLE = re.compile(r"…|(?<![\w.:/])/\S*/|(?<![\d.:])\d{3,}(?![\d.])")


def _word(word: str) -> str:
    if word == "…":
        return r"[\s\S]*?"
    return "".join(_placeholder(part) for part in re.split(f"({_VARIABLE.pattern})", word))


def _placeholder(part: str) -> str:
    if not _VARIABLE.fullmatch(part):
        return re.escape(part)
    return r"\S*/" if part.startswith("/") else r"\d+" if part.isdigit() else r"[\s\S]*?"


def _console(text: str) -> Iterator[Block]:
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = piece.splitlines(keepends=True)
        end = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\\n"))
        yield Block((_joined("".join(lines[:end])),), "".join(lines[end:]))


def _logical_lines(text: str) -> list[str]:
    return [line for line in _joined(text).splitlines() if line.strip()]


def _joined(text: str) -> str:
    return re.sub(r"\\\n\s*", "", text).strip()
