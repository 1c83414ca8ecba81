"""A request in the engine, and how it is made from the client's request."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from msx_core.generation.counts import texts_asked
from msx_llm.checks import limit_of, prompt_of
from msx_llm.handle import RequestHandle
from msx_llm.limits import EngineLimits
from msx_llm.replies import ReplyText, ReplyTokens, RequestDeltas, TextEnd
from msx_llm.sampling import (
    BadWords,
    Chosen,
    Constraints,
    ConstraintState,
    PromptScore,
    Sampler,
    prompt_logprobs,
)
from msx_llm.sequence import TokenSequence
from msx_llm.stats import RequestTimes
from msx_llm.step import Array
from msx_llm.text import TextStream, Tokenizer
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import GenerateRequest, SamplingParams

SEEDS = 1 << 64
APART = 0x9E3779B97F4A7C15
"""The distance between the seeds of a request's texts: far from the seeds of requests with 1, 2, 3, …"""


@dataclass(slots=True, eq=False)
class GenerationJob:
    number: int
    sequences: list[TokenSequence]
    replies: RequestDeltas
    handle: RequestHandle
    eos: frozenset[int]
    stops: frozenset[int]
    top: int = 0
    """How many of the likeliest tokens are wanted at each place of the prompt."""
    scores: list[PromptScore] = field(default_factory=lambda: [PromptScore()])
    """The scores of the prompt's tokens so far, if they are wanted."""
    ended: bool = False

    def begin(self, sequence: TokenSequence, now: float) -> None:
        """A step for the sequence was started."""
        if self.handle.times.started is None:
            self.handle.times.started = now
            self.replies.cached(sequence.cached or 0)

    def end_of(self, sequence: TokenSequence, chosen: Chosen) -> TextEnd | None:
        token = chosen.token
        if token in self.eos:
            return TextEnd("eos")
        if chosen.complete:
            return TextEnd("eos", spoken=True)
        if token in self.stops:
            return TextEnd("stop", token)
        return TextEnd("length") if len(sequence.tokens) >= sequence.limit else None

    def score(self, sequence: TokenSequence, start: int, logits: Array) -> None:
        """logits [n, vocab] of the prompt's tokens from `start` on: each row is about the next token."""
        targets = sequence.tokens[start + 1 : min(start + 1 + len(logits), sequence.prompt)]
        self.scores[start + 1 :] = prompt_logprobs(logits[: len(targets)], targets, self.top)
        self.scored(sequence)

    def scored(self, sequence: TokenSequence) -> None:
        if len(self.scores) == sequence.prompt:
            sequence.scored = False
            self.replies.score(sequence.tokens[: sequence.prompt], self.scores)


class GenerationJobFactory:
    def __init__(
        self, tokenizer: Tokenizer, limits: EngineLimits, vocab_size: int, constraints: Constraints | None = None
    ) -> None:
        self._tokenizer, self._limits, self._vocab_size = tokenizer, limits, vocab_size
        self._constraints = constraints
        self._tokens = ReplyTokens(tokenizer)

    def make(self, request: GenerateRequest, number: int, cancel: Callable[[], None]) -> GenerationJob:
        """Raises InvalidInput."""
        prompt, params, count = self._checked(request)
        seeds = self._seeds(params, count)
        sequences = [self._sequence(request, number, prompt, seed, index) for index, seed in enumerate(seeds)]
        texts = [ReplyText(self._stream(params), seed if params.temperature else None) for seed in seeds]
        replies = RequestDeltas(request, texts, self._tokens, prompt)
        eos = frozenset() if params.ignore_eos else self._tokenizer.eos
        stops = frozenset(params.stop_token_ids)
        job = GenerationJob(number, sequences, replies, RequestHandle(cancel, RequestTimes()), eos, stops)
        if params.prompt_logprobs:
            sequences[0].scored, job.top = True, max(params.prompt_top, params.logprobs or 0)
            job.scored(sequences[0])
        return job

    def _checked(self, request: GenerateRequest) -> tuple[list[int], SamplingParams, int]:
        count = texts_asked(request)
        return prompt_of(request, self._tokenizer, self._limits, self._vocab_size), request.params, count

    def _seeds(self, params: SamplingParams, count: int) -> list[int]:
        first = secrets.randbits(64) if params.seed is None else params.seed
        if first >= SEEDS:
            raise InvalidInput(f"seed: {first} is not below 2**64")
        return [(first + index * APART) % SEEDS for index in range(count)]

    def _sequence(
        self, request: GenerateRequest, number: int, prompt: list[int], seed: int, index: int
    ) -> TokenSequence:
        params = request.params
        limit = limit_of(params, len(prompt), self._limits)
        if (params.best_of or 0) > params.n and params.logprobs is None:
            params = msgspec.structs.replace(params, logprobs=0)
        constraint, bad_words = self._constraint(params), self._bad_words(params)
        sampler = Sampler(params, prompt, self._vocab_size, self._tokenizer.eos, seed, constraint, bad_words)
        order = (request.priority, number, index)
        return TokenSequence(list(prompt), order, limit, sampler, asked_by=request.owner)

    def _constraint(self, params: SamplingParams) -> ConstraintState | None:
        if params.constraint is None:
            return None
        if self._constraints is None:
            raise InvalidInput("constraint: not supported with the tokenizer of this model")
        return self._constraints.compile(params.constraint)

    def _bad_words(self, params: SamplingParams) -> BadWords | None:
        if not params.bad_words:
            return None
        sequences = self._tokenizer.sequences(params.bad_words)
        return BadWords(sequence for sequence in sequences if max(sequence) < self._vocab_size)

    def _stream(self, params: SamplingParams) -> TextStream:
        return TextStream(self._tokenizer, params.stop, params.keep_stop, params.skip_special_tokens, params.min_tokens)
