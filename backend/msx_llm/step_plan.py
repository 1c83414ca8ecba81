"""A step that the scheduler has planned, and what it leaves."""

from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from msx_llm.sequence import TokenSequence
from msx_llm.speculator import Drafts
from msx_llm.step import Decode, Mixed, Prefill, Prefills, Step


@dataclass(slots=True)
class StepPlan:
    """A step, and the sequences that it serves, in the order of its logits. They are in flight until it is done or
    failed, or has been foreseen."""

    step: Step
    sequences: list[TokenSequence]
    drafts: Drafts = field(default_factory=list)
    """The drafted tokens of each sequence, which have a row of logits each behind that of the last token; empty if
    there are none at all."""
    wanting: list[int] = field(init=False)
    """The places of sequences of which the step computes all tokens, so that they get another one."""

    def __post_init__(self) -> None:
        counts = enumerate(zip(self.sequences, self.appended(), strict=True))
        self.wanting = [place for place, (sequence, more) in counts if sequence.left == more]

    @property
    def rows(self) -> list[tuple[int, int]]:
        """The rows of logits of each sequence, where there are drafts."""
        ends = list(accumulate(1 + len(draft) for draft in self.drafts))
        return list(zip([0, *ends], ends, strict=False))

    def appended(self) -> list[int]:
        """How many tokens the step appends to each of its sequences, besides drafted ones."""
        step = self.step
        if isinstance(step, Mixed | Prefills):
            counts = [len(chunk.tokens) for chunk in step.chunks]
            return [counts[first] for first, _ in self.rows] if self.drafts else counts
        count = len(step.tokens) if isinstance(step, Prefill) else int(isinstance(step, Decode))
        return [count] * len(self.sequences)

    @property
    def name(self) -> str:
        """Name for messages."""
        if isinstance(self.step, Decode):
            return f"a decoding step of {len(self.sequences)} texts"
        if isinstance(self.step, Mixed | Prefills):
            tokens = sum(len(chunk.tokens) for chunk in self.step.chunks)
            return f"a step of {len(self.sequences)} texts and {tokens} tokens"
        if isinstance(self.step, Prefill):
            return f"a prefill step of {len(self.step.tokens)} tokens"
        return "a step of the cache"


class Written(NamedTuple):
    """After a step, the first `length` positions of a sequence are in the cache, at `slot`."""

    sequence: TokenSequence
    slot: int
    length: int
