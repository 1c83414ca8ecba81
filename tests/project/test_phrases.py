"""Sentences that many tests compare stand in tests/phrases.py, and in the product."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
PHRASES = "Worker" + " died.", "did not respond within" + " responseTimeout (", "has no worker" + " to serve inference"


def test_a_sentence_stands_once() -> None:
    found = {
        str(path.relative_to(TESTS)): phrase
        for path in sorted(TESTS.rglob("*.py"))
        for phrase in PHRASES
        if phrase in path.read_text()
    }
    assert found.keys() <= {"phrases.py"}, "compare with the functions of tests/phrases.py"
