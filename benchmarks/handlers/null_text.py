"""The engine of language models with a model that computes nothing: what is left is the host's share of a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from msx_core.config import parse_model_config
from msx_llm.handler import TextGenerator
from msx_llm.limits import limits_of
from msx_llm.models.registry import read_config
from msx_llm.sampling.choice import TokenChoice
from msx_llm.step import TokenChunk

Logits = NDArray[np.float32]
MEMORY = 1 << 40
"""Bytes: for as many texts as there are slots."""
FIRST_WORD = 256
"""The tokens before it are single bytes."""


class NullRunner:
    """Returns the same logits for each text, or the tokens that a device would have chosen of them, after the time that
    a device would take for the step."""

    chooses = follows = overlaps = True

    def __init__(self, vocab_size: int, slots: int, context: int, seconds: float, token: float = 0.0) -> None:
        """`seconds` of a step, and beside them of each `token` of prompts in it."""
        self.vocab_size, self.slots, self.context, self._seconds = vocab_size, slots, context, seconds
        self._token = token
        self._free = 0.0
        self._ids = np.arange(slots, dtype=np.int32) % (vocab_size - FIRST_WORD) + FIRST_WORD
        self._rows = np.random.default_rng(0).standard_normal((slots, vocab_size), np.float32)

    def prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Logits:
        return self.start_prefill(slot, start, tokens, all_logits)()

    def decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Logits:
        return self.start_decode(slots, tokens, positions)()

    def start_prefill(
        self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False
    ) -> Callable[[], Logits]:
        return lambda: np.tile(self._rows[0], (len(tokens), 1)) if all_logits else self._rows[0]

    def start_decode(
        self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]
    ) -> Callable[[], Logits]:
        return self._later(self._rows[: len(slots)])

    def mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Logits:
        return self.start_mixed(chunks, choices)()

    def start_mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Callable[[], Logits]:
        more = sum(len(chunk.tokens) - 1 for chunk in chunks) * self._token
        return self._later((self._ids if choices else self._rows)[: len(chunks)], more)

    def _later(self, answer: Any, more: float = 0.0) -> Callable[[], Logits]:
        """`more` seconds than a step takes. One step comes after the other, as on a device."""
        due = self._free = max(time.monotonic(), self._free) + self._seconds + more

        def finish() -> Logits:
            time.sleep(max(due - time.monotonic(), 0))
            return cast("Logits", answer)

        return finish

    def recount(self, slot: int, ids: Sequence[int], counts: Sequence[int]) -> None:
        pass

    def copy(self, source: int, target: int, length: int) -> None:
        pass

    def warm_up(self, report: Callable[[str], None]) -> None:
        pass


class NullTextGenerator(TextGenerator):
    def _load(self) -> None:
        own: dict[str, Any] = self.context.model_yaml_config["nullModel"]
        self.yaml = parse_model_config(self.context.model_yaml_config)[0]
        self.config = config = read_config(self.context.model_dir)
        self.limits = limits_of(self.yaml, config.context, 1, MEMORY)
        times = own["stepSeconds"], own.get("tokenSeconds", 0.0)
        self.runner = NullRunner(config.vocab_size, self.limits.slots, self.limits.context, *times)
