"""Converts a request to the token ids of a text, or of a pair of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msx_backend.llm.checks import too_long
from msx_backend.llm.classification.template import PairTemplate
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
    """`longest` includes the special tokens; `vocab_size` is the network's. Pairs are made one text by `template`, or
    joined by the tokenizer, with `prompt` before the first."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        longest: int,
        vocab_size: int,
        template: PairTemplate | None = None,
        prompt: str = "",
        pairs_alone: bool = False,
    ) -> None:
        self._tokenizer, self._longest, self._template, self._prompt = tokenizer, longest, template, prompt
        self._texts, self._pairs_alone = InputTokenizer(tokenizer, longest, vocab_size), pairs_alone

    def tokens(self, request: ClassifyRequest) -> PairTokens:
        """Raises InvalidInput, which names the parameter and its limit."""
        if request.pair is None and self._pairs_alone and isinstance(request.input, str):
            raise InvalidInput("pair: needed: this model says how well a second text fits the first")
        if request.pair is None:
            most, left = request.truncate, request.truncate_left
            return PairTokens(self._texts.tokens(EmbedRequest(input=request.input, truncate=most, truncate_left=left)))
        if not isinstance(request.input, str):
            raise InvalidInput("input: expected a text, since there is a pair; token ids are taken alone")
        check_truncate(request.truncate, self._longest)
        found = self._pair(request.input, request.pair, request.truncate, request.truncate_left)
        if len(found) > self._longest:
            raise ContextLengthExceeded(too_long("input", len(found), self._longest))
        return found

    def _pair(self, first: str, second: str, truncate: int | None, left: bool) -> PairTokens:
        if self._template is None:
            self._check_frame(truncate, self._tokenizer.pair_frame)
            return PairTokens(*self._tokenizer.pair(self._prompt + first, second, truncate, left))
        if left:
            raise InvalidInput(
                "truncate_left: a template stands around the pairs of this model, which are cut at their end"
            )
        ids, end = self._tokenizer.ending(*self._template.text(first, second), truncate)
        self._check_frame(truncate, end)
        return PairTokens(ids)

    def _check_frame(self, truncate: int | None, frame: int) -> None:
        if truncate is not None and truncate < frame + 2:
            raise InvalidInput(f"truncate: expected at least {frame + 2}: {frame} are special tokens")
