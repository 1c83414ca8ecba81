"""Words to numbers, by a vocabulary that lies beside the model: training and serving use the same code."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PADDING, UNKNOWN = 0, 1
LENGTH = 24
"""Words that the network sees of a text."""


class Vocabulary:
    def __init__(self, words: list[str]) -> None:
        self.words = words
        self._ids = {word: number for number, word in enumerate(words, 2)}

    def __len__(self) -> int:
        return len(self.words) + 2

    def encode(self, texts: Iterable[str]) -> NDArray[np.int32]:
        """→ ids [texts, LENGTH], padded at the end"""
        rows = [[self._ids.get(word, UNKNOWN) for word in split(text)[:LENGTH]] for text in texts]
        return np.array([row + [PADDING] * (LENGTH - len(row)) for row in rows], np.int32)

    def knows(self, text: str) -> bool:
        """Whether any word of the text is in it."""
        return any(word in self._ids for word in split(text))

    def save(self, file: Path) -> None:
        file.write_text(json.dumps(self.words, indent=0) + "\n")

    @classmethod
    def load(cls, file: Path) -> "Vocabulary":
        return cls(json.loads(file.read_text()))

    @classmethod
    def of(cls, texts: Iterable[str], least: int = 2) -> "Vocabulary":
        """Words that stand in the texts so often at least."""
        counts = Counter(word for text in texts for word in split(text))
        return cls(sorted(word for word, count in counts.items() if count >= least))


def split(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())
