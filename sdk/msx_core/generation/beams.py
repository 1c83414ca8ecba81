"""Which beams go on, and which texts have ended: the rules of Hugging Face transformers' `generate(num_beams=…)`."""

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msx_core.errors import InvalidInput
from msx_core.generation.sampling import BeamSearch, SamplingParams
from msx_core.generation.text import GenerateRequest

UNUSED = (
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "stop",
    "stop_token_ids",
    "allowed_token_ids",
    "bad_words",
    "min_tokens",
    "prompt_logprobs",
    "constraint",
)
"""Parameters that change the choice or the end of a text. The model's own defaults for sampling are passed over."""
SAMPLING = ("top_k", "top_p", "min_p", "typical_p")

Tops = tuple[tuple[int, float], ...]
"""The likeliest tokens at a place, and their log-probabilities."""


class BeamToken(NamedTuple):
    id: int
    logprob: float
    top: Tops


@dataclass(frozen=True)
class Beam:
    """`score` is the sum of log-probabilities."""

    tokens: tuple[BeamToken, ...] = ()
    score: float = 0.0


class EndedBeam(NamedTuple):
    score: float
    """Divided by the length to the power of the penalty."""
    beam: Beam
    by_eos: bool


class BeamRounds:
    """`running` beams are continued by one token at a time, of the `wanted` likeliest ones, until it is `over`; then
    `ended` has the best texts, the best first. `most`: tokens of a text."""

    def __init__(self, width: int, eos: Collection[int], most: int, options: BeamSearch) -> None:
        self._width, self._eos, self._most, self._penalty = width, eos, most, options.length_penalty
        self._early = options.early_stopping if width > 1 else True  # one beam is the greedy text
        self.wanted = wanted(width, len(eos))
        self.running, self.ended, self.over = [Beam()], list[EndedBeam](), False
        self._length = 0

    def grow(self, tops: Sequence[Tops]) -> None:
        """tops: of each running beam."""
        self._length += 1
        grown = sorted(self._grown(tops), key=lambda beam: -beam.score)[: self.wanted]
        self._end(grown[: self._width])
        self.running = [beam for beam in grown if not self._ends(beam)][: self._width]
        self.over = not self.running or self._full_early or not self._may_improve()

    def _grown(self, tops: Sequence[Tops]) -> list[Beam]:
        return [
            Beam((*beam.tokens, BeamToken(token, logprob, top)), beam.score + logprob)
            for beam, top in zip(self.running, tops, strict=True)
            for token, logprob in top
        ]

    def _end(self, likeliest: Sequence[Beam]) -> None:
        """One that ends and is not among them is not likely enough: it would be a text of the best only by its
        length."""
        penalty = self._length**self._penalty
        ended = [EndedBeam(it.score / penalty, it, self._by_eos(it)) for it in likeliest if self._ends(it)]
        self.ended = sorted([*self.ended, *ended], key=lambda one: -one.score)[: self._width]

    def _ends(self, beam: Beam) -> bool:
        return self._by_eos(beam) or self._length >= self._most

    def _by_eos(self, beam: Beam) -> bool:
        return beam.tokens[-1].id in self._eos

    @property
    def _full(self) -> bool:
        return len(self.ended) == self._width

    @property
    def _full_early(self) -> bool:
        return self._full and self._early is True

    def _may_improve(self) -> bool:
        """A running beam may become better than a text that has ended."""
        length = self._most if self._early == "never" and self._penalty > 0 else self._length
        best = self.running[0].score / length**self._penalty
        return not self._full or best > self.ended[-1].score


def wanted(width: int, ends: int) -> int:
    """So many tokens leave as many beams as there are, even if each end of a text is among those of all."""
    return max(2, 1 + ends) * width


def check_beams(request: GenerateRequest) -> None:
    """Raises InvalidInput for what a search cannot be asked together with."""
    params, plain = request.params, SamplingParams()
    if request.stream:
        raise InvalidInput("use_beam_search: not together with stream: the best text is known at the end")
    changed = [name for name in UNUSED if name not in SAMPLING and getattr(params, name) != getattr(plain, name)]
    if changed:
        raise InvalidInput(f"{changed[0]}: not together with use_beam_search; leave one of them out")


async def tops_of_all(asked: Sequence[Coroutine[Any, Any, tuple[Tops, int]]]) -> list[tuple[Tops, int]]:
    """Await the answers of a round's beams. The first failure ends the others."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
