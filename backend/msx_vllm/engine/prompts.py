"""Prompts of requests, made by vLLM's renderer: a text, token ids, or messages by the model's own chat template.

No image of a prompt enters the cache that vLLM's renderer shares with its engine (`skip_mm_cache`): the engine would
fail at one that it was not sent, because the request was refused or its client left meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jinja2
from vllm.renderers.params import ChatParams, TokenizeParams

from msx_core.chat_templates import sandbox
from msx_core.chat_templates.conversation import check_continued, check_variables
from msx_core.chat_templates.request_template import RequestTemplates
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import GenerateRequest, TokenizeRequest
from msx_vllm.checks import check_ids
from msx_vllm.engine.failures import TOO_LONG
from msx_vllm.engine.images import EngineImages
from msx_vllm.messages import ChatParts, illustrated, images_of_prompt

STANDARD = frozenset({"add_generation_prompt", "continue_final_message", "documents"})
"""Variables that a chat template has without being asked for."""


class EnginePrompts:
    """`context`: the most tokens of prompt and text together. `template`: one in the place of the model's own.
    `request_templates`: a request may bring its own."""

    def __init__(
        self,
        engine: Any,
        context: int,
        images: EngineImages,
        template: str | None = None,
        *,
        request_templates: bool = False,
    ) -> None:
        self._renderer, self._context, self._images = engine.renderer, context, images
        self._vocab_size: int = engine.model_config.get_vocab_size()
        self._given = template
        self.template = template or template_of(self._renderer.get_tokenizer(), engine.model_config)
        self.chats = self.template is not None
        self._tokens = _special_tokens(self._renderer.get_tokenizer())
        self._templates = RequestTemplates(self._tokens) if request_templates else None
        self.variables = None if not self.template else variables_of(self.template)

    async def render(self, request: GenerateRequest) -> Any:
        """The prompt as vLLM's engine takes it; its `prompt_token_ids` are there. Raises InvalidInput, and vLLM's
        exceptions."""
        if request.chat_template is not None:
            return await self._plain(request, await self._by_own_template(request))
        if request.messages is not None:
            made = await self._chat(request, self._tokenizing(request))
        elif request.images:
            made = await self._illustrated(request, self._tokenizing(request))
        else:
            return await self._plain(request, request.prompt)
        if request.images:
            _check_uncut(len(made["prompt_token_ids"]), request.truncate)
        return made

    async def written(self, request: TokenizeRequest) -> str | list[int]:
        """Write messages by the chat template: a text, or the tokens of messages with images, and of a tokenizer that
        writes them by itself. Raises InvalidInput."""
        if request.chat_template is not None:
            return await self._by_own_template(request)
        if request.images:
            made = await self._chat(request, TokenizeParams(max_total_tokens=None, add_special_tokens=False))
            ids: list[int] = made["prompt_token_ids"]
            return ids
        chat = self._chat_parts(request)
        with _refusing("messages"):
            _, prompt = await self._renderer.render_messages_async(chat.messages, self._chat_params(request))
        written: str | list[int] = prompt["prompt"] if "prompt" in prompt else prompt["prompt_token_ids"]
        return written

    async def _plain(self, request: GenerateRequest, text: str | tuple[int, ...] | None) -> Any:
        if text is None:
            raise InvalidInput("prompt: expected a text, or token ids")
        if isinstance(text, str):
            prompt: dict[str, Any] = {"prompt": text}
        else:
            ids = list(text[-request.truncate :] if request.truncate else text)
            prompt = {"prompt_token_ids": ids}
        (made,) = await self._renderer.render_cmpl_async([prompt], self._tokenizing(request))
        check_ids(made["prompt_token_ids"], self._vocab_size)
        return made

    async def _illustrated(self, request: GenerateRequest, kept: TokenizeParams) -> Any:
        """A text with images in their places."""
        if not isinstance(request.prompt, str):
            raise InvalidInput("images: expected a text, or messages, beside them")
        placed = images_of_prompt(request.images, self._images.most)
        text = illustrated(request.prompt, request.images, self._images.mark)
        digests = [one.digest for one in request.images]
        async with self._images.decoded(placed) as pictures:
            media = {"multi_modal_data": {"image": pictures}, "multi_modal_uuids": {"image": digests}}
            with _refusing("prompt"):
                (made,) = await self._renderer.render_cmpl_async([{"prompt": text, **media}], kept, skip_mm_cache=True)
        return made

    async def _chat(self, request: GenerateRequest | TokenizeRequest, kept: TokenizeParams) -> Any:
        chat, params = self._chat_parts(request), self._chat_params(request)
        async with self._images.decoded(chat.images) as pictures:
            chat.fill(pictures)
            with _refusing("messages"):
                _, (made,) = await self._renderer.render_chat_async([chat.messages], params, kept, skip_mm_cache=True)
        return made

    def _chat_parts(self, request: GenerateRequest | TokenizeRequest) -> ChatParts:
        if request.prompt is not None:
            raise InvalidInput("prompt: expected either a prompt or messages, not both")
        if not self.chats:
            raise InvalidInput("messages: this model has no chat template; send a prompt")
        return ChatParts(request, self._images.most)

    async def _by_own_template(self, request: GenerateRequest | TokenizeRequest) -> str:
        """Write messages by the template that the request has brought, which is not trusted."""
        if self._templates is None or request.chat_template is None:
            raise InvalidInput("chat_template: this model uses its own alone; leave it out")
        if request.images:
            raise InvalidInput("chat_template: not together with images; leave one of them out")
        if request.prompt is not None:
            raise InvalidInput("prompt: expected either a prompt or messages, not both")
        options = {
            "add_generation_prompt": request.add_generation_prompt,
            "continue_final_message": request.continue_final_message,
            **request.chat_template_kwargs,
        }
        return await self._templates.render(request.chat_template, request.messages or [], request.tools, **options)

    def _chat_params(self, request: GenerateRequest | TokenizeRequest) -> ChatParams:
        """Raises InvalidInput."""
        check_variables(request.chat_template_kwargs, self._tokens)
        begins = request.add_generation_prompt
        if request.continue_final_message:
            check_continued(bool(begins))
        given = {
            "add_generation_prompt": not request.continue_final_message if begins is None else begins,
            "continue_final_message": request.continue_final_message,
            "tools": request.tools or None,
            **{name: value for name, value in request.chat_template_kwargs.items() if self._reads(name)},
        }
        return ChatParams(self._given, chat_template_kwargs={"tokenize": not self.template, **given})

    def _reads(self, name: str) -> bool:
        """Whether the template reads it: the others would be options of the tokenizer."""
        return name in STANDARD or name in (self.variables or ())

    def _tokenizing(self, request: GenerateRequest) -> TokenizeParams:
        truncate = None if request.images else request.truncate and min(request.truncate, self._context)
        return TokenizeParams(
            max_total_tokens=self._context,
            truncate_prompt_tokens=truncate,
            add_special_tokens=request.add_special_tokens,
        )


def _special_tokens(tokenizer: Any) -> dict[str, str]:
    """`bos_token` and so on; none of a tokenizer that writes messages by itself."""
    found = getattr(tokenizer, "special_tokens_map", {})
    return {name: str(token) for name, token in found.items() if not isinstance(token, list | dict)}


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Raise InvalidInput for messages or a prompt with images of which the model's files make nothing. What is too long
    is vLLM's own error."""
    try:
        yield
        return
    except InvalidInput:
        raise
    except Exception as error:  # a template is a program: it may fail in any way on messages that it does not expect
        if getattr(error, "parameter", None) in TOO_LONG:
            raise
        reason = _first_cause(error)
    by = "chat template refuses them" if name == "messages" else "processor refuses it"
    raise InvalidInput(f"{name}: the model's {by}: {reason}")


def _first_cause(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else _first_cause(error.__cause__)


def _check_uncut(tokens: int, truncate: int | None) -> None:
    if truncate is not None and tokens > truncate:
        raise InvalidInput(
            f"truncate: the prompt has {tokens} tokens with its images, more than {truncate}; one with images is not "
            "cut: send a shorter one, or leave truncate out"
        )


def template_of(tokenizer: Any, config: Any) -> str | None:
    """The source of the chat template; "" for a tokenizer that writes messages by itself; None without either."""
    from vllm.renderers.hf import resolve_chat_template
    from vllm.tokenizers.hf import HfTokenizer

    if not isinstance(tokenizer, HfTokenizer):
        return ""
    found: str | None = resolve_chat_template(tokenizer, None, None, model_config=config)
    return found


def variables_of(template: str) -> tuple[str, ...] | None:
    """The variables that a template reads beyond messages, tools and special tokens; None if they are not known."""
    try:
        found = sandbox.variables_of(template)
    except jinja2.TemplateError:  # vLLM's Jinja may have more extensions
        return None
    return tuple(sorted(one for one in found - {"messages", "tools"} if not one.endswith("_token")))
