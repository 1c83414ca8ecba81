"""Chooses a text's next token."""

from collections.abc import Sequence

import msgspec
import numpy as np

from msx_llm.sampling.adjustments import Adjustments, banned
from msx_llm.sampling.bad_words import BadWords
from msx_llm.sampling.choice import TokenChoice
from msx_llm.sampling.constraint import ConstraintState
from msx_llm.sampling.draw import RandomNumbers, draw
from msx_llm.sampling.filters import weights
from msx_llm.sampling.largest import Row
from msx_llm.sampling.logprobs import Logprobs
from msx_sdk.errors import PredictionError
from msx_sdk.generation import SamplingParams

COLDEST = 1e-5
"""Temperature below which only the likeliest token has any weight."""


class Chosen(msgspec.Struct, frozen=True):
    """`logprob` and `top`, of (token, logprob), are there when `logprobs` was asked for.

    With a `failure` the text ends with this error, and `token` means nothing.
    """

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    complete: bool = False
    """The constraint is complete: only the end of the text may follow."""
    failure: PredictionError | None = None


class Sampler:
    """Chooses the tokens of one text. Raises InvalidInput if the parameters name tokens that the model does not have.

    `prompt` counts for the repetition penalty; its ids are below `vocab_size`, as `eos` are. `seed` < 2**64: the i-th
    draw depends on it and i alone.
    """

    def __init__(
        self,
        params: SamplingParams,
        prompt: Sequence[int],
        vocab_size: int,
        eos: frozenset[int],
        seed: int,
        constraint: ConstraintState | None = None,
        bad_words: BadWords | None = None,
    ) -> None:
        self._params, self._constraint, self._bad_words, self._made = params, constraint, bad_words, 0
        self._adjust = Adjustments(params, prompt, vocab_size) if Adjustments.wanted(params) else None
        self._banned = banned(params, eos, vocab_size)
        self._dice = None if params.temperature < COLDEST else RandomNumbers(seed)

    @property
    def finished(self) -> bool:
        """The constraint is complete: only the end of the text may follow."""
        return self._constraint is not None and self._constraint.is_stopped

    def choose(self, logits: Row) -> Chosen:
        """Chooses the next token, and counts it. logits [vocab] float32, which are not changed."""
        row = self._allowed(logits)
        token = int(row.argmax())
        if not np.isfinite(row[token]):
            return Chosen(token, failure=self._dead_end(logits))
        if self._dice is not None:
            token = draw(weights(row, self._params, row[token]), self._dice.throw())
        return self._accept(token, logits)

    @property
    def is_plain(self) -> bool:
        """The next token depends on the logits, `temperature`, `top_k`, `top_p`, `min_p`, penalties and a random number
        alone, and nothing else is asked of them."""
        adjusted = self._adjust is not None and not self._adjust.are_penalties
        changed = adjusted or self._bad_words or self._constraint or self._made < self._params.min_tokens
        return not changed and self._params.logprobs is None and self._params.typical_p >= 1

    @property
    def counts(self) -> dict[int, int]:
        """Counts of the tokens that penalties apply to: see `Recount`."""
        return {} if self._adjust is None else self._adjust.counts

    def order(self) -> TokenChoice:
        """Parameters with which the device chooses the next token. It takes the text's next random number, so that
        `take` must follow. Only if `is_plain`."""
        params = self._params
        penalties = params.frequency_penalty, params.presence_penalty, params.repetition_penalty
        if self._dice is None:
            return TokenChoice(0.0, 0, 1.0, 0.0, 0.0, *penalties)
        top_k, uniform = max(params.top_k, 0), self._dice.throw()
        return TokenChoice(params.temperature, top_k, params.top_p, params.min_p, uniform, *penalties)

    def take(self, token: int) -> Chosen:
        """The device chose this token, or -1 because the logits are not finite."""
        if token < 0:
            return Chosen(token, failure=not_finite())
        self._made += 1
        if self._adjust is not None:
            self._adjust.count(token)
        return Chosen(token)

    def _accept(self, token: int, logits: Row) -> Chosen:
        self._made += 1
        if self._adjust is not None:
            self._adjust.count(token)
        if self._bad_words is not None:
            self._bad_words.count(token)
        if self._constraint is not None and not self._constraint.accept(token):
            return Chosen(token, failure=self._constraint.failure)
        if self._params.logprobs is None:
            return Chosen(token, complete=self.finished)
        logprobs = Logprobs(logits)
        return Chosen(token, logprobs.of(token), logprobs.top(self._params.logprobs), self.finished)

    def _allowed(self, logits: Row) -> Row:
        row = logits if self._adjust is None else self._adjust.apply(logits)
        if self._bad_words is not None:
            row = row.copy() if row is logits else row
            self._bad_words.ban(row)
        early = self._made < self._params.min_tokens
        if self._constraint is not None:
            return np.where(self._mask(self._constraint, early), row, np.float32(-np.inf))
        if early:
            row = row.copy() if row is logits else row
            row[self._banned] = -np.inf
        return row

    def _mask(self, constraint: ConstraintState, early: bool) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """A constraint that allows only the end of the text overrides `min_tokens`."""
        mask = constraint.mask()
        if not early:
            return mask
        later = mask.copy()
        later[self._banned] = False
        return later if later.any() else mask

    def _dead_end(self, logits: Row) -> PredictionError:
        if self._constraint is not None and self._constraint.failure is not None:
            return self._constraint.failure
        if np.isfinite(logits.max()) and self._bad_words is not None:
            return PredictionError(400, "bad_words: without them no token of this model can follow the text so far")
        if np.isfinite(logits.max()):
            return PredictionError(400, "constraint: no token of this model can follow the text so far")
        return not_finite()


def not_finite() -> PredictionError:
    return PredictionError(500, "The model's logits are not finite numbers (NaN or infinity)")


def choose_all(samplers: Sequence[Sampler], logits: Row) -> list[Chosen]:
    """One token for each text of a step, as each sampler alone would choose. logits [n, vocab] float32."""
    return [sampler.choose(row) for sampler, row in zip(samplers, logits, strict=True)]


def verify_all(
    samplers: Sequence[Sampler], logits: Sequence[Row], drafts: Sequence[Sequence[int]]
) -> list[list[Chosen]]:
    return [verify(*text) for text in zip(samplers, logits, drafts, strict=True)]


def verify(sampler: Sampler, logits: Row, draft: Sequence[int]) -> list[Chosen]:
    """Chooses tokens as if each had a step of its own, as long as they are the drafted ones: each comes of the model's
    own distribution, and by a seed's same numbers, whatever was drafted. logits [1 + draft, vocab]: of the place before
    each drafted token, and of that behind the last."""
    chosen = [sampler.choose(logits[0])]
    for row, token in zip(logits[1:], draft, strict=True):
        last = chosen[-1]
        if last.token != token or last.complete or last.failure is not None:
            break
        chosen.append(sampler.choose(row))
    return chosen
