"""The prompt of a request's messages or texts, and its tokens."""

from pathlib import Path
from typing import Any, ClassVar

from msx_core.chat_templates.chat import ChatTemplate
from msx_core.generation.wire import encode
from msx_llm.text.length import check_size, too_long
from msx_llm.text.text_calls import TextCall, TextFiles, TokenizeCall
from msx_llm.text.tokenizer import Tokenizer
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import ContextLengthExceeded, GenerateRequest, TokenizeReply, TokenizeRequest

MOST_SPANS = 131_072
"""Tokens of one reply: some megabytes."""


class Prompts:
    """`longest`: the most tokens of a prompt."""

    def __init__(self, tokenizer: Tokenizer, chat: ChatTemplate | None, vocab_size: int, longest: int) -> None:
        self._tokenizer, self._chat, self._vocab_size, self._longest = tokenizer, chat, vocab_size, longest

    def tokens(self, request: GenerateRequest) -> tuple[int, ...]:
        """The token ids of the prompt, which may be truncated. Raises InvalidInput."""
        text = self._text(request)
        if request.truncate is None:
            check_size("prompt", text, self._tokenizer, self._longest)
        kept = request.truncate or self._longest + 1
        ids, whole = self._tokenizer.some(text, kept, left=request.truncate is not None)
        if request.add_special_tokens:
            ids = [*self._tokenizer.before, *ids, *self._tokenizer.after]
        ids = ids[-request.truncate :] if request.truncate else ids
        if len(ids) > self._longest:
            counted = len(ids) if whole or request.truncate else None
            raise ContextLengthExceeded(too_long("prompt", counted, self._longest))
        return tuple(ids)

    def check_size(self, request: GenerateRequest) -> None:
        """Raises ContextLengthExceeded for a prompt that is too long for certain, without tokenizing it."""
        if isinstance(request.prompt, str) and request.truncate is None:
            check_size("prompt", request.prompt, self._tokenizer, self._longest)

    def tokenized(self, request: TokenizeRequest) -> bytes:
        """A `TokenizeReply`, encoded. Raises InvalidInput."""
        return encode(self.reply(request))

    def reply(self, request: TokenizeRequest) -> TokenizeReply:
        """Raises InvalidInput."""
        if request.ids is not None:
            return TokenizeReply(tokens=[], text=self._text_of(request.ids, request.skip_special_tokens))
        text, special = self._text(request), request.messages is None and request.add_special_tokens
        if len(text) > MOST_SPANS and len(self._tokenizer.some(text, MOST_SPANS + 1)[0]) > MOST_SPANS:
            raise InvalidInput(
                f"prompt: it has more than {MOST_SPANS} tokens, the most of one reply; send its parts one by one"
            )
        tokens = self._tokenizer.spans(text, add_special_tokens=special)
        return TokenizeReply(tokens=tokens, text=text, special=self._tokenizer.special_among(one.id for one in tokens))

    def _text_of(self, ids: tuple[int, ...], skip_special: bool) -> str:
        if beyond := [token for token in ids if token >= self._vocab_size]:
            raise InvalidInput(
                f"tokens: the model has no token {beyond[0]}, its tokens are 0 to {self._vocab_size - 1}"
            )
        return self._tokenizer.decode(ids, skip_special)

    def _text(self, request: GenerateRequest | TokenizeRequest) -> str:
        """The prompt, or what the chat template makes of messages."""
        if request.messages is None:
            if not isinstance(request.prompt, str):
                raise InvalidInput("prompt: expected a text")
            return request.prompt
        check_alone(request)
        if self._chat is None:
            raise InvalidInput("messages: this model has no chat template; send a prompt")
        return self._chat.render(request.messages, request.tools, **template_options(request))


class PromptCall(TextCall[Prompts, tuple[int, ...]], tag="prompt", array_like=True):
    request: GenerateRequest
    result = tuple[int, ...]

    def answer(self, texts: Prompts) -> tuple[int, ...]:
        """The token ids of the prompt."""
        return texts.tokens(self.request)


class PromptFiles(TextFiles[Prompts], tag="prompts"):
    """A folder in Hugging Face's layout."""

    folder: str
    vocab_size: int
    longest: int
    calls: ClassVar[Any] = PromptCall | TokenizeCall

    def load(self) -> Prompts:
        folder = Path(self.folder)
        return Prompts(Tokenizer.from_folder(folder), ChatTemplate.from_folder(folder), self.vocab_size, self.longest)


def check_alone(request: GenerateRequest | TokenizeRequest) -> None:
    """Raises InvalidInput for a prompt beside messages."""
    if request.prompt is not None and request.messages is not None:
        raise InvalidInput("prompt: expected either a prompt or messages, not both")


def template_options(request: GenerateRequest | TokenizeRequest) -> dict[str, Any]:
    own = {name: getattr(request, name) for name in ("add_generation_prompt", "continue_final_message")}
    return {**own, **request.chat_template_kwargs}
