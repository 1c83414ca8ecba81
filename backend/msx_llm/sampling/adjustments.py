"""Changes of the logits before a token is chosen: bias, penalties, allowed tokens, and bans until `min_tokens`."""

from collections.abc import Sequence

import numpy as np

from msx_llm.sampling.choice import TOKEN_MADE
from msx_llm.sampling.largest import Ids, Row
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import SamplingParams

MAX_BIAS = 100
"""OpenAI's limit: larger than any difference between a model's logits."""


class Adjustments:
    """The adjustments for one text. Raises InvalidInput for tokens that the model does not have and biases beyond
    ±100."""

    def __init__(self, params: SamplingParams, prompt: Sequence[int], vocab_size: int) -> None:
        self._frequency, self._presence = params.frequency_penalty, params.presence_penalty
        self._repetition = np.float32(params.repetition_penalty)
        self._bias = {check_token("logit_bias", id, vocab_size): bias(id, it) for id, it in params.logit_bias.items()}
        self._counts: dict[int, int] = {}
        self.are_penalties = not params.logit_bias and not params.allowed_token_ids
        """The other adjustments leave the logits as they are."""
        self._offsets = _allowed(params.allowed_token_ids, vocab_size)
        self._offsets[list(self._bias)] += list(self._bias.values())
        self._seen = np.unique(np.asarray(prompt, np.intp)) if params.repetition_penalty != 1 else np.arange(0)

    @staticmethod
    def wanted(params: SamplingParams) -> bool:
        penalties = params.frequency_penalty or params.presence_penalty or params.repetition_penalty != 1
        return bool(params.logit_bias or params.allowed_token_ids or penalties)

    @property
    def counts(self) -> dict[int, int]:
        """Count of each token in the text: see `Recount`."""
        made = {token: TOKEN_MADE * count for token, count in self._counts.items()}
        return dict.fromkeys(self._seen.tolist(), 1) | made

    def apply(self, logits: Row) -> Row:
        """[vocab] -> [vocab], a new array."""
        moved: Row = logits + self._offsets
        if self._repetition != 1:
            moved[self._seen] = self._repeated(logits[self._seen]) + self._offsets[self._seen]
        return moved

    def count(self, token: int) -> None:
        """The text has grown by this token."""
        count = self._counts[token] = self._counts.get(token, 0) + 1
        self._offsets[token] = self._bias.get(token, 0.0) - self._frequency * count - self._presence
        if self._repetition != 1 and count == 1:
            self._see(token)

    def _see(self, token: int) -> None:
        place = int(self._seen.searchsorted(token))
        if place == self._seen.size or self._seen[place] != token:
            self._seen = np.insert(self._seen, place, token)

    def _repeated(self, logits: Row) -> Row:
        return np.where(logits > 0, logits / self._repetition, logits * self._repetition)


def _allowed(tokens: Sequence[int], vocab_size: int) -> Row:
    """[vocab]: 0 for these, minus infinity for all others; without any, 0 for all."""
    offsets = np.full(vocab_size, -np.inf if tokens else 0, np.float32)
    offsets[[check_token("allowed_token_ids", token, vocab_size) for token in tokens]] = 0
    return offsets


def banned(params: SamplingParams, eos: frozenset[int], vocab_size: int) -> Ids:
    """The tokens that would end the text before it has `min_tokens`."""
    ends = {check_token("stop_token_ids", token, vocab_size) for token in params.stop_token_ids}
    return np.array(sorted(ends if params.ignore_eos else ends | eos), np.intp)


def bias(token: int, value: float) -> float:
    if not -MAX_BIAS <= value <= MAX_BIAS:
        raise InvalidInput(f"logit_bias: {value:g} for token {token} is not between -{MAX_BIAS} and {MAX_BIAS}")
    return value


def check_token(field: str, token: int, vocab_size: int) -> int:
    if not 0 <= token < vocab_size:
        raise InvalidInput(f"{field}: the model has no token {token}, its tokens are 0 to {vocab_size - 1}")
    return token
