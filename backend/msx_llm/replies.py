"""The deltas of one request."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from msx_core.generation.wire import encode
from msx_llm.sampling import Chosen, PromptScore
from msx_llm.text import TextStream, Tokenizer
from msx_sdk.generation import FinishReason, GenerateDelta, GenerateRequest, Token, TopToken, Usage


class TextEnd(NamedTuple):
    reason: FinishReason
    detail: str | int | None = None
    """The stop string or token."""
    spoken: bool = False
    """The last token belongs to the text, such as the brace that completes a constrained object."""


class SharedDelta(NamedTuple):
    """The delta of a token whose text is shown as it is, and the same encoded."""

    delta: GenerateDelta
    data: bytes


class ReplyTokens:
    """Tokens as clients see them. Those without log-probabilities are made once and reused."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.plain = lru_cache(1 << 16)(self._plain)
        self.shared = lru_cache(1 << 16)(self._shared)

    def scored(
        self, id: int, logprob: float | None, top: tuple[tuple[int, float], ...] = (), rank: int | None = None
    ) -> Token:
        others = tuple(TopToken(id=other, text=self.plain(other).text, logprob=value) for other, value in top)
        plain, data = self.plain(id), self._tokenizer.token_bytes(id)
        special = plain.special
        return Token(id=id, text=plain.text, special=special, logprob=logprob, bytes=data, top=others, rank=rank)

    def _shared(self, id: int) -> SharedDelta | None:
        """None for a token that is special, or not whole characters."""
        try:
            text = self._tokenizer.token_bytes(id).decode()
        except UnicodeDecodeError:
            return None
        delta = GenerateDelta(text=text, tokens=(self.plain(id),))
        return None if self._tokenizer.special(id) else SharedDelta(delta, encode(delta))

    def _plain(self, id: int) -> Token:
        return Token(id=id, text=self._tokenizer.token_text(id), special=self._tokenizer.special(id))


@dataclass(slots=True)
class ReplyText:
    """`parts` and `tokens` are those that are not in a delta yet."""

    stream: TextStream
    seed: int | None
    parts: list[str] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    made: int = 0
    logprob: float = 0.0

    def read(self, token: int, end: TextEnd | None, keep_stop: bool) -> TextEnd | None:
        """Adds a token. -> Why the text ends with it, if it does."""
        spoken = end is None or end.spoken or end.reason == "length" or (keep_stop and end.reason == "stop")
        if end is not None and not spoken:
            self.parts.append(self.stream.finish())
            return end
        piece = self.stream.push(token)
        self.parts.append(piece.text)
        if piece.stop is not None:
            return TextEnd("stop", piece.stop)
        if end is not None:
            self.parts.append(self.stream.finish())
        return end

    def delta(self, index: int, end: TextEnd | None) -> GenerateDelta:
        delta = GenerateDelta(index=index, text="".join(self.parts), tokens=tuple(self.tokens))
        self.parts, self.tokens = [], []
        if end is not None:
            delta.finish_reason, delta.stop_reason, delta.seed = end.reason, end.detail, self.seed
        return delta


class RequestDeltas:
    """The deltas of one request, in the order in which they are sent.

    With `stream`, one for each token; without, one for each text; with `best_of`, all at the end.
    """

    def __init__(
        self, request: GenerateRequest, texts: Sequence[ReplyText], tokens: ReplyTokens, prompt: Sequence[int]
    ) -> None:
        self._params, self._stream = request.params, request.stream
        self._texts, self._tokens = texts, tokens
        self._open = set(range(len(texts)))
        self._held: dict[int, GenerateDelta] = {}
        self._usage = Usage(prompt=len(prompt), completion=0)
        self._prompt_ids = tuple(prompt) if request.return_prompt_ids else ()
        self._prompt: tuple[Token, ...] = ()

        self._alone = request.stream and len(texts) == 1 and self._params.logprobs is None and not self._prompt_ids

    def shared(self, token: int) -> SharedDelta | None:
        """Reads a token that does not end its text, if its delta is that of any text; else it is left to `grow`."""
        if not self._alone:
            return None
        text = self._texts[0]
        shared = self._tokens.shared(token) if text.stream.shows_whole else None
        if shared is not None:
            text.made += 1
            self._usage.completion += 1
        return shared

    def cached(self, tokens: int) -> None:
        self._usage.cached = tokens

    def score(self, prompt: Sequence[int], scores: Sequence[PromptScore]) -> None:
        """Called before the first token."""
        self._alone = False
        self._prompt = tuple(self._tokens.scored(id, *score) for id, score in zip(prompt, scores, strict=True))

    def grow(self, index: int, chosen: Chosen, end: TextEnd | None) -> tuple[list[GenerateDelta], TextEnd | None]:
        """-> The deltas to send now, and why the text ends with this token, if it does: stop strings are found only
        here."""
        text = self._texts[index]
        end = text.read(chosen.token, end, self._params.keep_stop)
        text.tokens.append(self._token(chosen))
        text.made += 1
        text.logprob += chosen.logprob or 0.0
        self._usage.completion += 1
        if end is not None:
            self._open.discard(index)
        deltas = [text.delta(index, end)] if self._stream or end is not None else []
        return self._finished(deltas), end

    def is_open(self, index: int) -> bool:
        """The text has not ended."""
        return index in self._open

    @property
    def over(self) -> bool:
        return not self._open

    def _token(self, chosen: Chosen) -> Token:
        if self._params.logprobs is None:
            return self._tokens.plain(chosen.token)
        return self._tokens.scored(chosen.token, chosen.logprob, chosen.top)

    def _finished(self, deltas: list[GenerateDelta]) -> list[GenerateDelta]:
        if len(self._texts) > self._params.n:
            self._held.update((delta.index, delta) for delta in deltas)
            deltas = [] if self._open else self._best()
        if deltas and self._prompt:
            deltas[0].prompt_tokens, self._prompt = self._prompt, ()
        if deltas and self._prompt_ids:
            deltas[0].prompt_ids, self._prompt_ids = self._prompt_ids, ()
        if deltas and not self._open:
            deltas[-1].usage = self._usage
        return deltas

    def _best(self) -> list[GenerateDelta]:
        """The best texts by mean log-probability; among equals the first."""
        ranked = sorted(sorted(self._held), key=lambda index: -self._texts[index].logprob / self._texts[index].made)
        best = [self._held[index] for index in ranked[: self._params.n]]
        for index, delta in enumerate(best):
            delta.index = index
        return best
