"""The tokens of what requests send."""

from typing import TypeVar

import msgspec

from msx_core.chat_templates.request_template import RequestTemplates
from msx_core.generation.wire import encode
from msx_llm.text.prompts import PromptCall, PromptFiles, Prompts, check_alone, template_options
from msx_llm.text.text_calls import TokenizeCall
from msx_llm.text.tokenizing import SHORT, Tokenizing
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import GenerateRequest, SamplingParams, TokenizeRequest

R = TypeVar("R", GenerateRequest, TokenizeRequest)

NO_REQUEST_TEMPLATE = (
    "chat_template: this model uses its own alone; requestChatTemplate: true in model-config.yaml allows a request's"
)
MESSAGE = 256
"""Characters of a prompt that take as long as a chat template takes for a message without any."""


class RequestTexts:
    """`files` are those of `prompts`, for another process; `largest_body` as of `message_limit`;
    `templates`: where requests may bring a chat template."""

    def __init__(
        self,
        prompts: Prompts,
        files: PromptFiles,
        largest_body: int,
        templates: RequestTemplates | None = None,
    ) -> None:
        self._prompts, self._templates = prompts, templates
        self._tokenizing = Tokenizing(prompts, files, largest_body)

    async def with_tokens(self, request: GenerateRequest) -> GenerateRequest:
        """The same with token ids as the prompt, unless it is a short text. Raises InvalidInput."""
        if request.messages is None and (not isinstance(request.prompt, str) or len(request.prompt) <= SHORT):
            return request
        asked = msgspec.structs.replace(request, params=SamplingParams(), adapter_files=None)
        asked = await self._with_own_template(asked)
        self._prompts.check_size(asked)
        ids = await self._tokenizing.run(PromptCall(request=asked), size_of(asked))
        return msgspec.structs.replace(request, prompt=ids, messages=None)

    async def tokenized(self, request: TokenizeRequest) -> msgspec.Raw:
        """A `TokenizeReply`, encoded. Raises InvalidInput."""
        asked = await self._with_own_template(request)
        return msgspec.Raw(await self._tokenizing.run(TokenizeCall(request=asked), size_of(asked)))

    def close(self) -> None:
        self._tokenizing.close()

    async def _with_own_template(self, request: R) -> R:
        """Render the request's messages by its chat template, if it has one."""
        template, messages = request.chat_template, request.messages
        if template is None or messages is None:
            return request
        check_alone(request)
        if self._templates is None:
            raise InvalidInput(NO_REQUEST_TEMPLATE)
        text = await self._templates.render(template, messages, request.tools, **template_options(request))
        special = isinstance(request, GenerateRequest) and request.add_special_tokens
        written = {"prompt": text, "messages": None, "chat_template": None, "add_special_tokens": special}
        return msgspec.structs.replace(request, **written)


def size_of(request: GenerateRequest | TokenizeRequest) -> int:
    """About how many characters there are to be tokenized."""
    if request.messages is not None:
        return len(encode(request)) + MESSAGE * len(request.messages)
    if isinstance(request.prompt, str):
        return len(request.prompt)
    return len(request.ids or ()) if isinstance(request, TokenizeRequest) else 0
