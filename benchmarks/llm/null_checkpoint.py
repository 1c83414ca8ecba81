"""The files of a language model that has a configuration and a tokenizer, and no weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers.pre_tokenizers import ByteLevel

from benchmarks.llm.checkpoint import Checkpoint, token_text


class NullCheckpoint:
    """Its first tokens are all single bytes, so that JSON can be written, the others are words of four letters."""

    def __init__(self, vocabulary: int) -> None:
        self._plain = replace(Checkpoint(), vocabulary=vocabulary)

    def write(self, folder: Path) -> None:
        """Writes the files into the folder, which must exist."""
        (folder / "config.json").write_text(json.dumps({**self._plain.config(), "eos_token_id": 0}))
        (folder / "tokenizer.json").write_text(json.dumps(self._tokenizer()))
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))

    def _tokenizer(self) -> dict[str, Any]:
        spec = self._plain.tokenizer()
        letters = sorted(ByteLevel.alphabet())
        words = [token_text(id) for id in range(self._plain.vocabulary - len(letters))]
        spec["model"]["vocab"] = {text: id for id, text in enumerate([*letters, *words])}
        return spec
