"""What a request's messages or texts are to the model: a prompt, and its tokens."""

from __future__ import annotations

from typing import Any

import msgspec

from msx_backend.llm.text.chat import ChatTemplate
from msx_backend.llm.text.request_template import RequestTemplates
from msx_backend.llm.text.tokenizer import Tokenizer
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import GenerateRequest, TokenizeReply, TokenizeRequest

NO_REQUEST_TEMPLATE = (
    "chat_template: this model uses its own alone; requestChatTemplate: true in model-config.yaml allows a request's"
)


class Prompts:
    """`templates`: where requests may bring a chat template of their own."""

    def __init__(
        self, tokenizer: Tokenizer, chat: ChatTemplate | None, templates: RequestTemplates | None, vocab_size: int
    ) -> None:
        self._tokenizer, self._chat, self._templates, self._vocab_size = tokenizer, chat, templates, vocab_size

    async def with_prompt(self, request: GenerateRequest) -> GenerateRequest:
        """The same with a prompt instead of messages. Raises InvalidInput."""
        if request.messages is None:
            return request
        if request.prompt is not None:
            raise InvalidInput("prompt: expected either a prompt or messages, not both")
        return msgspec.structs.replace(request, prompt=await self._rendered(request, request.messages), messages=None)

    async def tokenized(self, request: TokenizeRequest) -> TokenizeReply:
        """Raises InvalidInput."""
        if request.ids is not None:
            return TokenizeReply(tokens=[], text=self._text_of(request.ids, request.skip_special_tokens))
        if request.messages is not None:
            text, special = await self._rendered(request, request.messages), False
        elif request.prompt is not None:
            text, special = request.prompt, request.add_special_tokens
        else:
            raise InvalidInput("prompt: expected a text")
        tokens = self._tokenizer.spans(text, add_special_tokens=special)
        return TokenizeReply(tokens=tokens, text=text, special=self._tokenizer.special_among(one.id for one in tokens))

    def _text_of(self, ids: tuple[int, ...], skip_special: bool) -> str:
        if beyond := [token for token in ids if token >= self._vocab_size]:
            raise InvalidInput(
                f"tokens: the model has no token {beyond[0]}, its tokens are 0 to {self._vocab_size - 1}"
            )
        return self._tokenizer.decode(ids, skip_special)

    async def _rendered(self, request: GenerateRequest | TokenizeRequest, messages: list[dict[str, Any]]) -> str:
        """What the chat template makes of messages."""
        own = {name: getattr(request, name) for name in ("add_generation_prompt", "continue_final_message")}
        options = {**own, **request.chat_template_kwargs}
        if request.chat_template is not None:
            if self._templates is None:
                raise InvalidInput(NO_REQUEST_TEMPLATE)
            return await self._templates.render(request.chat_template, messages, request.tools, **options)
        if self._chat is None:
            raise InvalidInput("messages: this model has no chat template; send a prompt")
        return self._chat.render(messages, request.tools, **options)
