"""Short prompts that are computed together: a step reads all weights, whatever number of tokens it has."""

from bisect import bisect_left
from collections.abc import Sequence

from msx_llm.buckets import bucket_of
from msx_llm.pace import STEP_TOKENS, PrefillPace
from msx_llm.sequence import TokenSequence


class PromptGroups:
    """A group is padded to one of `texts` prompts, all of one bucket: at most `most` tokens. `texts` is empty where the
    runner takes one prompt a step. All their positions, those of the cache too, are in the first of the `contexts` that
    holds the bucket: graphs of groups have that one."""

    def __init__(self, texts: Sequence[int], contexts: Sequence[int], pace: PrefillPace, most: int, block: int) -> None:
        self._texts, self._contexts, self._pace = texts, contexts, pace
        self._most, self._block = most, block

    def cost(self, count: int, tokens: int) -> int:
        """Tokens of a step of so many prompts, the longest of which has `tokens`, including padding."""
        padded = count if count == 1 else self._texts[bisect_left(self._texts, count)]
        return padded * self._pace.cost(tokens)

    def chosen(self, filling: Sequence[TokenSequence], room: int) -> list[TokenSequence]:
        """The first prompt, and those that are computed in the same step. `filling`: in the order of their turns;
        `room`: the most tokens of the step."""
        first = filling[0]
        if first.scored or not self._reaches(first):
            return [first]
        size = self._pace.cost(first.left)
        like = (one for one in filling if _like(one, first) and self._reaches(one))
        fitting = [one for one in like if self._pace.cost(one.left) == size]
        return fitting[: self._count(len(fitting), first.left, room)]

    def takes(self, filling: Sequence[TokenSequence], sequence: TokenSequence) -> bool:
        """Whether a prompt that is not admitted yet may join those that are: not one that would find more of its
        beginning in the cache when they are computed."""
        lengths = [*(one.left for one in filling), len(sequence.tokens)]
        if not self._fits(len(lengths), max(lengths), self._most):
            return False
        likes = not sequence.scored and all(_like(one, sequence) and self._reaches(one) for one in filling)
        return likes and not any(self._is_ahead(one, sequence) for one in filling)

    def _reaches(self, one: TokenSequence) -> bool:
        """The graph of a group with this prompt attends to all its positions."""
        return len(one.tokens) <= bucket_of(self._contexts, self._pace.cost(one.left))

    def _is_ahead(self, one: TokenSequence, sequence: TokenSequence) -> bool:
        """`one` computes the beginning of the other text."""
        end = one.computed + self._block
        return one.tokens[:end] == sequence.tokens[:end]

    def _count(self, count: int, tokens: int, room: int) -> int:
        """The most of so many prompts that cost less together than one after the other."""
        room = min(room, self._most)
        while count > 1 and not (self._fits(count, tokens, room) and self._pays(count, tokens)):
            count = max((size for size in self._texts if size < count), default=1)
        return count

    def _fits(self, count: int, tokens: int, room: int) -> bool:
        return bool(self._texts) and count <= self._texts[-1] and self.cost(count, tokens) <= room

    def _pays(self, count: int, tokens: int) -> bool:
        return self.cost(count, tokens) + STEP_TOKENS <= count * (self.cost(1, tokens) + STEP_TOKENS)


def _like(one: TokenSequence, other: TokenSequence) -> bool:
    """They may be computed together; logits of whole prompts are of one text a step."""
    return not one.scored and one.priority == other.priority
