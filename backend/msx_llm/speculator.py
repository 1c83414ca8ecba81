"""Decides which drafted tokens are worth their places in a step."""

import logging
from collections.abc import Sequence
from itertools import dropwhile

from msx_core.config import SpeculativeOptions
from msx_llm.buckets import bucket_of
from msx_llm.sequence import TokenSequence
from msx_llm.speculation.drafts import TextDrafts, learned
from msx_llm.speculation.ngram import NgramIndex
from msx_llm.speculation.offered import OfferedDraft
from msx_llm.step import Decode, Mixed, Step

log = logging.getLogger("msx.llm")

HOPE = 0.5
"""The expected rate before anything is known."""
PRIOR_WEIGHT = 0.02
COST_WEIGHT, OUTLIER = 0.1, 2.0
"""The weight of a new measurement, which counts as at most this many times the usual one."""
TRIAL = 0.01
"""The share of time that trials may cost where drafts do not pay: each step without adds this part of a step."""

Drafts = list[list[int]]


class Speculator:
    """A step is the same graph whether its places hold texts or drafted tokens, so that its cost is known by its number
    of places, rounded up to one of `buckets`. Drafts are taken if they raise the expected tokens per second.

    Pure as the scheduler: times come from outside.
    """

    def __init__(self, options: SpeculativeOptions, buckets: Sequence[int], states: int | None = None) -> None:
        """`states`: those that the cache has for drafted tokens; None where they need none."""
        if buckets[-1] == 1:
            log.warning(
                "speculative: nothing will be drafted, because a drafted token takes a place of a step that no text "
                "takes, and slotBuckets: [1] has one place; add a larger number to slotBuckets"
            )
        self._options, self._buckets = options, buckets
        self._costs: dict[int, float] = {}
        """Seconds of a step, by its bucket."""
        self._rate, self._refused = HOPE, 0
        self._written = 0.0
        """Seconds that a small model takes for a token of every draft; 0 without one, and until it was measured."""
        self.drafted = self.accepted = 0
        self._states, self._kept = states, dict[int, tuple[TokenSequence, int]]()
        """The text of each slot's last step, and how many tokens were drafted there, in the order of the steps: the
        text's next step may go on behind any of them."""

    def drafts_of_text(self) -> TextDrafts:
        """Begins a text, which is expected to accept what others did, and at first no more than `HOPE`: what is lost on
        one that accepts nothing is little then."""
        source = NgramIndex(self._options.ngram) if self._options.method == "ngram" else OfferedDraft()
        return TextDrafts(source, self._options.tokens, min(self._rate, HOPE))

    def wanted(self, batch: Sequence[TokenSequence], room: int) -> list[int]:
        """How many tokens a small model should draft for each text; [] for none at all."""
        plain = self._costs.get(self._bucket(len(batch)))
        room = self._with_states(batch, room)
        if room < 1 or plain is None:
            return []
        most = [min(self._options.tokens, room, it.limit - len(it.tokens) - 1) for it in batch]
        return self._counts(batch, [[0] * max(count, 0) for count in most], room, plain)

    def wrote(self, depth: int, seconds: float) -> None:
        """A small model wrote drafts of `depth` tokens in that time."""
        own = seconds / depth
        before = self._written if self._written else own
        self._written = before + COST_WEIGHT * (min(own, before * OUTLIER) - before)

    def drafts(self, batch: Sequence[TokenSequence], room: int) -> Drafts:
        """The drafted tokens for each text; [] if none are worth it. `room`: places that no text takes."""
        plain = self._costs.get(self._bucket(len(batch)))
        room = self._with_states(batch, room)
        if room < 1 or plain is None:
            return []
        proposals = [_proposal(sequence, room) for sequence in batch]
        if not any(proposals):
            return []
        if self._options.method == "draft":  # which were wanted, and are paid for
            return _fitting(proposals, room)
        counts = self._counts(batch, proposals, room, plain)
        return [proposal[:count] for proposal, count in zip(proposals, counts, strict=True)] if counts else []

    def began(self, batch: Sequence[TokenSequence], drafts: Drafts) -> None:
        """Note that a step of these texts was started; see `drafts`."""
        if self._states is None:
            return
        for sequence, draft in zip(batch, drafts or [[]] * len(batch), strict=True):
            if sequence.slot is not None:
                self._kept.pop(sequence.slot, None)
                if draft:
                    self._kept[sequence.slot] = sequence, len(draft)

    def note(self, sequence: TokenSequence, drafted: int, accepted: int) -> None:
        """Note how many of a text's draft tokens were accepted."""
        self.drafted += drafted
        self.accepted += accepted
        self._rate = learned(self._rate, drafted, accepted, PRIOR_WEIGHT)
        if sequence.drafts is not None:
            sequence.drafts.note(drafted, accepted)

    def took(self, step: Step, seconds: float) -> None:
        if isinstance(step, Decode):
            self._measure(len(step.slots), seconds)
        elif isinstance(step, Mixed) and all(len(chunk.tokens) == 1 for chunk in step.chunks):
            self._measure(len(step.chunks), seconds)

    def _with_states(self, batch: Sequence[TokenSequence], room: int) -> int:
        """The places for which there are states, too, beside those that texts of other steps may go on behind. The
        cache gives up the oldest first: those of texts that have left, up to the first one that has not, are free."""
        if self._states is None:
            return room
        own = {sequence.slot for sequence in batch}
        others = [(slot, *kept) for slot, kept in self._kept.items() if slot not in own]
        needed = dropwhile(lambda it: it[1].finished or it[1].slot != it[0], others)
        return min(room, self._states - sum(count for _, _, count in needed))

    def _measure(self, rows: int, seconds: float) -> None:
        before = self._costs.setdefault(self._bucket(rows), seconds)
        self._costs[self._bucket(rows)] = before + COST_WEIGHT * (min(seconds, before * OUTLIER) - before)

    def _counts(self, batch: Sequence[TokenSequence], proposals: Drafts, room: int, plain: float) -> list[int]:
        """How many of each proposal: the likeliest, as many as fit the best bucket; [] if no bucket is worth it."""
        gains = _gains(batch, proposals)
        best, places = 0.0, 0
        for bucket in self._wider(len(batch), room):
            more = bucket - len(batch)
            expected = len(batch) + sum(gain for gain, _, _ in gains[:more])
            depth = max((1 - place for _, place, _ in gains[:more]), default=0)
            if (pace := expected / (self._cost(bucket, plain) + depth * self._written)) > best:
                best, places = pace, more
        if best * plain * (1 + TRIAL * self._refused) <= len(batch):
            self._refused += 1
            return []
        self._refused = 0
        counts = [0] * len(batch)
        for _, _, text in gains[:places]:
            counts[text] += 1
        return counts

    def _wider(self, rows: int, room: int) -> list[int]:
        """The numbers of places worth looking at."""
        whole = rows + room
        return sorted({min(bucket, whole) for bucket in self._buckets if bucket > rows})

    def _cost(self, rows: int, plain: float) -> float:
        """Cost of a step; one that was never measured is taken to cost what a smaller one does, so that it is tried."""
        known = [self._costs[it] for it in self._buckets if it <= self._bucket(rows) and it in self._costs]
        return max(known[-1] if known else plain, plain)

    def _bucket(self, rows: int) -> int:
        return bucket_of(self._buckets, rows)


def _proposal(sequence: TokenSequence, room: int) -> list[int]:
    """A token beyond the text's limit would be computed in vain."""
    if sequence.drafts is None:
        return []
    return sequence.drafts.propose(sequence.tokens, min(room, sequence.limit - len(sequence.tokens) - 1))


def _fitting(proposals: Drafts, room: int) -> Drafts:
    """As much of each, in turn, as there is room for."""
    fitting: Drafts = []
    for proposal in proposals:
        fitting.append(proposal[:room])
        room -= len(fitting[-1])
    return fitting


def _gains(batch: Sequence[TokenSequence], proposals: Drafts) -> list[tuple[float, int, int]]:
    """How likely each drafted token is to be accepted, its place in the draft, and its text; the likeliest first."""
    gains = [
        (sequence.drafts.rate ** (place + 1), -place, text)
        for text, (sequence, proposal) in enumerate(zip(batch, proposals, strict=True))
        if sequence.drafts is not None
        for place in range(len(proposal))
    ]
    return sorted(gains, reverse=True)
