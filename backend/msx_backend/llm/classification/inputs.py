"""Converts a request to the token ids of a text, or of a pair of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msx_backend.llm.checks import too_long
from msx_backend.llm.embedding.inputs import InputTokenizer, check_truncate
from msx_backend.llm.text import Tokenizer
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import ClassifyRequest, ContextLengthExceeded, EmbedRequest


@dataclass(frozen=True)
class PairTokens:
    """`segments` are 1 in the second text, where the model tells it from the first one."""

    ids: Sequence[int]
    segments: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.ids)


class PairTokenizer:
    """`longest` includes the special tokens; `vocab_size` is the network's."""

    def __init__(self, tokenizer: Tokenizer, longest: int, vocab_size: int) -> None:
        self._tokenizer, self._longest = tokenizer, longest
        self._texts = InputTokenizer(tokenizer, longest, vocab_size)

    def tokens(self, request: ClassifyRequest) -> PairTokens:
        """Raises InvalidInput, which names the parameter and its limit."""
        if request.pair is None:
            return PairTokens(self._texts.tokens(EmbedRequest(input=request.input, truncate=request.truncate)))
        if not isinstance(request.input, str):
            raise InvalidInput("input: expected a text, since there is a pair; token ids are taken alone")
        self._check_truncate(request.truncate)
        ids, segments = self._tokenizer.pair(request.input, request.pair, request.truncate)
        if len(ids) > self._longest:
            raise ContextLengthExceeded(too_long("input", len(ids), self._longest))
        return PairTokens(ids, segments)

    def _check_truncate(self, truncate: int | None) -> None:
        check_truncate(truncate, self._longest)
        frame = self._tokenizer.pair_frame
        if truncate is not None and truncate < frame + 2:
            raise InvalidInput(f"truncate: expected at least {frame + 2}: {frame} are special tokens")
