"""Shows what is tokenized."""

from __future__ import annotations

import pytest

from msx_llm.text import Tokenizer


def tokenized_texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are tokenized in this process from now on."""
    seen: list[str] = []
    for name in ("_ids", "_encode"):
        _watch(monkeypatch, name, seen)
    return seen


def _watch(monkeypatch: pytest.MonkeyPatch, name: str, seen: list[str]) -> None:
    call = getattr(Tokenizer, name)

    def watched(self: Tokenizer, text: str) -> object:
        seen.append(text)
        return call(self, text)

    monkeypatch.setattr(Tokenizer, name, watched)
