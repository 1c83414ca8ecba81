"""Converts a request to the token ids of the network's input."""

from pathlib import Path
from typing import Any, ClassVar

from msx_core.input_prompts import NO_PROMPTS, InputPrompts
from msx_llm.text import Tokenizer
from msx_llm.text.length import check_size, too_long
from msx_llm.text.pairs import cut
from msx_llm.text.prompts import Prompts
from msx_llm.text.text_calls import TextCall, TextFiles, TokenizeCall
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import ContextLengthExceeded, EmbedRequest, TokenizeRequest

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
        self._plain = Prompts(tokenizer, None, vocab_size, longest)

    def check_size(self, request: EmbedRequest) -> None:
        """Raises ContextLengthExceeded for a text that is too long for certain, without tokenizing it. Small letters
        may take less bytes, except in ASCII."""
        text = request.input
        if isinstance(text, str) and request.truncate is None and (text.isascii() or not self._lower_case):
            check_size("input", text, self._tokenizer, self._longest)

    def tokenized(self, request: TokenizeRequest) -> bytes:
        """A `TokenizeReply`, encoded. Raises InvalidInput."""
        return self._plain.tokenized(request)

    def tokens(self, request: EmbedRequest) -> list[int]:
        """Raises InvalidInput, which names the parameter and its limit."""
        check_truncate(request.truncate, self._longest)
        self.check_size(request)
        if isinstance(request.input, str):
            prompt = self._prompts.before(request.prompt_name)
            tokens = self._of_text(prompt + request.input, request.truncate, request.truncate_left)
        elif request.prompt_name is not None:
            raise InvalidInput("prompt_name: only before a text, not before token ids")
        else:
            tokens = cut(list(request.input), request.truncate or len(request.input), request.truncate_left)
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
        frame = len(self._tokenizer.before) + len(self._tokenizer.after)
        if truncate is not None and truncate <= frame:
            raise InvalidInput(f"truncate: expected at least {frame + 1}: {frame} are special tokens")
        most = self._longest + 1 if truncate is None else truncate - frame
        ids, whole = self._tokenizer.some(text.lower() if self._lower_case else text, most, left)
        if truncate is None and not whole:
            raise ContextLengthExceeded(too_long("input", None, self._longest))
        kept = ids if truncate is None else cut(ids, most, left)
        return [*self._tokenizer.before, *kept, *self._tokenizer.after]


class InputCall(TextCall[InputTokenizer, list[int]], tag="input", array_like=True):
    request: EmbedRequest
    result = list[int]

    def answer(self, texts: InputTokenizer) -> list[int]:
        """The token ids of the input."""
        return texts.tokens(self.request)


class InputFiles(TextFiles[InputTokenizer], tag="inputs"):
    """A folder in Hugging Face's layout."""

    folder: str
    longest: int
    vocab_size: int
    lower_case: bool = False
    prompts: InputPrompts = NO_PROMPTS
    calls: ClassVar[Any] = InputCall | TokenizeCall

    def load(self) -> InputTokenizer:
        tokenizer = Tokenizer.from_folder(Path(self.folder))
        return InputTokenizer(tokenizer, self.longest, self.vocab_size, self.lower_case, self.prompts)


def check_truncate(truncate: int | None, longest: int) -> None:
    """Raises InvalidInput."""
    if truncate is not None and truncate > longest:
        raise InvalidInput(f"truncate: {truncate} is more than {LIMIT}, {longest}")
