"""Converts a request to the token ids of the network's input."""

from __future__ import annotations

from msx_backend.llm.checks import too_long
from msx_backend.llm.embedding.prompts import InputPrompts
from msx_backend.llm.text import Tokenizer
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import ContextLengthExceeded, EmbedRequest

LIMIT = "maxInputTokens"


class InputTokenizer:
    """`longest` includes the special tokens; `vocab_size` is the network's."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        longest: int,
        vocab_size: int,
        lower_case: bool = False,
        prompts: InputPrompts | None = None,
    ) -> None:
        self._tokenizer, self._longest, self._prompts = tokenizer, longest, prompts or InputPrompts()
        self._vocab_size, self._lower_case = vocab_size, lower_case

    def tokens(self, request: EmbedRequest) -> list[int]:
        """Raises InvalidInput, which names the parameter and its limit."""
        check_truncate(request.truncate, self._longest)
        if isinstance(request.input, str):
            prompt = self._prompts.before(request.prompt_name)
            tokens = self._of_text(prompt + request.input, request.truncate, request.truncate_left)
        elif request.prompt_name is not None:
            raise InvalidInput("prompt_name: only before a text, not before token ids")
        else:
            tokens = cut(list(request.input), request.truncate, request.truncate_left)
        if not tokens:
            raise InvalidInput("input: expected a text of at least one token")
        if len(tokens) > self._longest:
            raise ContextLengthExceeded(too_long("input", len(tokens), self._longest))
        wrong = next((token for token in tokens if not 0 <= token < self._vocab_size), None)
        if wrong is not None:
            raise InvalidInput(f"input: {wrong} is not a token id of this model, which has 0 to {self._vocab_size - 1}")
        return tokens

    def _of_text(self, text: str, truncate: int | None, left: bool) -> list[int]:
        """Text is truncated, but its special tokens are kept, as in Hugging Face's tokenizers."""
        ids = self._tokenizer.encode(text.lower() if self._lower_case else text, add_special_tokens=False)
        frame = len(self._tokenizer.before) + len(self._tokenizer.after)
        if truncate is not None:
            if truncate <= frame:
                raise InvalidInput(f"truncate: expected at least {frame + 1}: {frame} are special tokens")
            ids = cut(ids, truncate - frame, left)
        return [*self._tokenizer.before, *ids, *self._tokenizer.after]


def cut(ids: list[int], most: int | None, left: bool) -> list[int]:
    """The first `most` of them, or the last if `left`."""
    over = 0 if most is None else max(len(ids) - most, 0)
    return ids[over:] if left else ids[: len(ids) - over]


def check_truncate(truncate: int | None, longest: int) -> None:
    """Raises InvalidInput."""
    if truncate is not None and truncate > longest:
        raise InvalidInput(f"truncate: {truncate} is more than {LIMIT}, {longest}")
