"""Docstrings start with a verb or a noun phrase, which `scripts/check` demands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECK = Path(__file__).parents[2] / "scripts" / "_docstrings.py"
FRAGMENTS = '''"""What a module has."""
class Reply:
    """
    Those that were sent."""

    size = 0
    """Of the body, in bytes."""
    links = {}
    """By the names of both ends."""

    def head(self):
        """That of the reply."""
'''
WHOLE = '''"""Whatever a module has."""
def head():
    """Head of a reply. Of two, the last."""
    return "What a string says is free"
def tail():
    """Over-long tails are cut."""
'''


def check(folder: Path, text: str, place: str = ".") -> subprocess.CompletedProcess[str]:
    (folder / place).mkdir(exist_ok=True)
    (folder / place / "one.py").write_text(text)
    return subprocess.run([sys.executable, CHECK, place], cwd=folder, capture_output=True, text=True)


def test_each_fragment_is_named_by_file_and_line(tmp_path: Path) -> None:
    done = check(tmp_path, FRAGMENTS)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "one.py:1: What a module has.",
        "one.py:3: Those that were sent.",
        "one.py:7: Of the body, in bytes.",
        "one.py:9: By the names of both ends.",
        "one.py:12: That of the reply.",
    ]


def test_those_of_tests_may_begin_with_a_preposition(tmp_path: Path) -> None:
    done = check(tmp_path, FRAGMENTS, "tests")
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["What", "Those", "Of", "That"]


def test_other_docstrings_and_strings_pass(tmp_path: Path) -> None:
    done = check(tmp_path, WHOLE)
    assert (done.returncode, done.stdout) == (0, "")
