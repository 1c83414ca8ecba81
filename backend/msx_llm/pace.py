"""How much of a prompt is computed between two decoding steps."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from msx_llm.step import Decode, Mixed, Prefill, Step

WEIGHT = 0.1
"""The weight of a new measurement."""
OUTLIER = 2.0
"""A measurement counts as at most this many times the usual one."""


class PrefillPace:
    """A chunk of a prompt may cost as much as the decoding step after it, so that the gap between two tokens at most
    doubles.

    The chunk is one of `buckets`, to which runners pad: at least the smallest, at most `most`, with which it starts
    until both costs have been measured.
    """

    def __init__(self, buckets: Sequence[int], most: int) -> None:
        self._buckets = [*(bucket for bucket in buckets if bucket < most), most]
        self._prefill: float | None = None
        """Seconds of one token, including padding."""
        self._decode: float | None = None

    def cost(self, tokens: int) -> int:
        """Seconds, including padding."""
        return self._buckets[min(bisect_left(self._buckets, tokens), len(self._buckets) - 1)]

    def note(self, step: Step, seconds: float) -> None:
        if isinstance(step, Decode):
            self._decode = _smoothed(self._decode, seconds)
        elif isinstance(step, Prefill):
            self._prefill = _smoothed(self._prefill, seconds / self.cost(len(step.tokens)))
        elif isinstance(step, Mixed):
            self._note_mixed([len(chunk.tokens) for chunk in step.chunks], seconds)

    @property
    def chunk(self) -> int:
        """The size of a chunk in tokens while other texts decode."""
        if not self._prefill or self._decode is None:
            return self._buckets[-1]
        return self._buckets[max(bisect_right(self._buckets, self._decode / self._prefill), 1) - 1]

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
