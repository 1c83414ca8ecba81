"""The files of a language model without weights whose tokenizer has words to find, and texts of these words."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from benchmarks.llm.checkpoint import Checkpoint

WORDS, TRAINED = 5_000, 200_000
"""Different words; characters that the tokenizer is trained on."""


class WordsCheckpoint:
    """A byte-level BPE behind Unicode's normal form, as Qwen's models have it. `context`: tokens."""

    def __init__(self, vocabulary: int, context: int) -> None:
        self._context, self._random = context, random.Random(0)
        self._words = [self._word() for _ in range(WORDS)]
        self.tokenizer = Tokenizer(models.BPE())
        self.tokenizer.normalizer = normalizers.NFC()
        self.tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.tokenizer.decoder = decoders.ByteLevel()
        letters = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=letters, show_progress=False)
        self.tokenizer.train_from_iterator([self.text(TRAINED)], trainer)

    def write(self, folder: Path) -> None:
        """Writes the files into the folder, which must exist."""
        plain = replace(Checkpoint(), vocabulary=self.tokenizer.get_vocab_size(), context=self._context)
        (folder / "config.json").write_text(json.dumps({**plain.config(), "eos_token_id": 0}))
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
        self.tokenizer.save(str(folder / "tokenizer.json"))

    def text(self, characters: int) -> str:
        """Make a text of at most so many characters; no two are alike."""
        words, length = [], 0
        while length < characters:
            words.append(self._random.choice(self._words))
            length += len(words[-1]) + 1
        return " ".join(words)[:characters]

    def longest(self, tokens: int) -> str:
        """A text of whole words, of as many tokens or a few less."""
        text = self.text(tokens * 12)
        encoding = self.tokenizer.encode(text)
        return text[: text.rindex(" ", 0, encoding.offsets[tokens][0])]

    def _word(self) -> str:
        return "".join(self._random.choices(ascii_lowercase, k=self._random.randint(1, 9)))
