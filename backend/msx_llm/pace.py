"""How much of a prompt is computed in one step, and between two decoding steps."""

from bisect import bisect_right
from collections.abc import Sequence
from math import inf

from msx_llm.buckets import bucket_of
from msx_llm.step import Decode, Mixed, Prefill, Prefills, Step

WEIGHT = 0.1
"""The weight of a new measurement."""
OUTLIER = 2.0
"""A measurement counts as at most this many times the usual one."""
MOST_STEPS = 16.0
"""Prompts cost at most as much as this many decoding steps between two of them."""
STEP_TOKENS = 20
"""A prefill step reads all weights, which takes as long as to compute this many tokens: on a CPU steps of 32, 128, 256
and 512 tokens of a model of 135 million parameters take as long as 16 to 22 tokens more than these."""
LEAST = 32
"""Tokens of the smallest chunk between two decoding steps, if there is such a bucket: half as many take two thirds of
the time."""


class PrefillPace:
    """A chunk of a long prompt may cost as much as the decoding step after it, so that the gap between two tokens at
    most doubles; where more prompts wait than texts decode, as much as so many steps.

    A prompt that fits one chunk may cost as much as `MOST_STEPS` at once: its text soon shares the steps of the others,
    of which one takes little longer for it.

    The chunk is one of `buckets`, to which runners pad: at most `most`, with which it starts until both costs have been
    measured, and at least the smallest, of a step of its own `LEAST`.
    """

    def __init__(self, buckets: Sequence[int], most: int) -> None:
        self._buckets = [*(bucket for bucket in buckets if bucket < most), most]
        self._least = LEAST if LEAST in self._buckets else self._buckets[0]
        self._prefill: float | None = None
        """Seconds of one token, including padding."""
        self._decode: float | None = None

    def cost(self, tokens: int) -> int:
        """Tokens of a step, including padding."""
        return bucket_of(self._buckets, tokens)

    def piece(self, tokens: int) -> int:
        """Tokens of the next step of a prompt that has so many left, at most the largest bucket: all of them in one
        padded step, or a full bucket where several steps cost less."""
        first, cost = 0, inf
        for left in reversed(self._lefts(tokens)):
            full, whole = self._bucket_of(left), self.cost(left) + STEP_TOKENS
            divided = full + STEP_TOKENS + cost
            first, cost = (full, divided) if divided < whole else (left, whole)
        return first

    def note(self, step: Step, seconds: float) -> None:
        if isinstance(step, Decode):
            self._decode = _smoothed(self._decode, seconds)
        elif isinstance(step, Prefill):
            self._prefill = _smoothed(self._prefill, seconds / self.cost(len(step.tokens)))
        elif isinstance(step, Prefills):
            tokens = len(step.chunks) * self.cost(max(len(chunk.tokens) for chunk in step.chunks))
            self._prefill = _smoothed(self._prefill, seconds / tokens)
        elif isinstance(step, Mixed):
            self._note_mixed([len(chunk.tokens) for chunk in step.chunks], seconds)

    @property
    def chunk(self) -> int:
        """Tokens of prompts in a step in which other texts decode."""
        return self._bucket_of(self._affordable(1.0))

    def room(self, steps: float) -> int:
        """Tokens of prompts that cost as much as `steps` decoding steps; the smallest chunk at least."""
        return max(self._affordable(min(steps, MOST_STEPS)), self._least)

    def within(self, tokens: int, room: int) -> int:
        """`piece` of a prompt that has so many tokens left, in so much `room`."""
        return self.piece(min(tokens, self._bucket_of(room)))

    def _affordable(self, steps: float) -> int:
        if not self._prefill or self._decode is None:
            return self._buckets[-1]
        return int(steps * self._decode / self._prefill)

    def _lefts(self, tokens: int) -> list[int]:
        """Tokens that are left before each step, where all buckets but the last are full."""
        found = [tokens]
        while (full := self._bucket_of(found[-1])) < found[-1]:
            found.append(found[-1] - full)
        return found

    def _bucket_of(self, room: int) -> int:
        return self._buckets[max(bisect_right(self._buckets, room), 1) - 1]

    def _note_mixed(self, counts: Sequence[int], seconds: float) -> None:
        """Nothing is padded in such a step. What the prompts in it cost is what it takes longer than a step without."""
        decoding, prompts = sum(count == 1 for count in counts), sum(count for count in counts if count > 1)
        if not prompts:
            self._decode = _smoothed(self._decode, seconds)
        elif not decoding or self._decode is not None:
            own = seconds - (self._decode or 0.0 if decoding else 0.0)
            self._prefill = _smoothed(self._prefill, max(own, 0.0) / prompts)


def _smoothed(before: float | None, seconds: float) -> float:
    if before is None:
        return seconds
    return before + WEIGHT * (min(seconds, before * OUTLIER) - before)
