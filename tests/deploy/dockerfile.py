"""Reads the image's Dockerfile."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CONTAINER = ROOT / "deploy" / "container"


class Instruction(NamedTuple):
    word: str
    rest: str


def instructions() -> list[Instruction]:
    text = re.sub(r"^\s*#.*\n", "", (CONTAINER / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [Instruction(*line.split(maxsplit=1)) for line in lines if line.strip()]


def of(word: str) -> list[str]:
    return [found.rest for found in instructions() if found.word == word]


def final_stage() -> list[Instruction]:
    found = instructions()
    last = max(at for at, one in enumerate(found) if one.word == "FROM")
    return found[last:]
