"""Prompts of requests, made by vLLM's renderer: a text, token ids, or messages by the model's own chat template."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jinja2.meta
import jinja2.sandbox
from vllm.renderers.params import ChatParams, TokenizeParams

from msx_sdk.errors import InvalidInput
from msx_sdk.generation import GenerateRequest, TokenizeRequest
from msx_vllm.checks import check_ids, check_messages

STANDARD = frozenset({"add_generation_prompt", "continue_final_message", "documents", "tools"})
"""Variables that a chat template has without being asked for."""


class EnginePrompts:
    """`context`: the most tokens of prompt and text together. `template`: one in the place of the model's own."""

    def __init__(self, engine: Any, context: int, template: str | None = None) -> None:
        self._renderer, self._config, self._context = engine.renderer, engine.model_config, context
        self._vocab_size: int = engine.model_config.get_vocab_size()
        self._given = template
        self.template = template or template_of(self._renderer.get_tokenizer(), engine.model_config)
        self.chats = self.template is not None
        self.variables = None if not self.template else variables_of(self.template)

    async def render(self, request: GenerateRequest) -> Any:
        """The prompt as vLLM's engine takes it; its `prompt_token_ids` are there. Raises InvalidInput, and vLLM's
        exceptions."""
        kept = self._tokenizing(request)
        if request.messages is not None:
            return await self._chat(request, kept)
        if request.prompt is None:
            raise InvalidInput("prompt: expected a text, or token ids")
        if isinstance(request.prompt, str):
            prompt: dict[str, Any] = {"prompt": request.prompt}
        else:
            ids = list(request.prompt[-request.truncate :] if request.truncate else request.prompt)
            prompt = {"prompt_token_ids": ids}
        (made,) = await self._renderer.render_cmpl_async([prompt], kept)
        check_ids(made["prompt_token_ids"], self._vocab_size)
        return made

    async def written(self, request: TokenizeRequest) -> str | list[int]:
        """Write messages by the chat template: a text, or the tokens of a tokenizer that writes them by itself. Raises
        InvalidInput."""
        messages, params = self._asked(request)
        with _refusing():
            _, prompt = await self._renderer.render_messages_async(messages, params)
        made: str | list[int] = prompt["prompt"] if "prompt" in prompt else prompt["prompt_token_ids"]
        return made

    async def _chat(self, request: GenerateRequest, kept: TokenizeParams) -> Any:
        messages, params = self._asked(request)
        with _refusing():
            _, (made,) = await self._renderer.render_chat_async([messages], params, kept)
        return made

    def _asked(self, request: GenerateRequest | TokenizeRequest) -> tuple[list[dict[str, Any]], ChatParams]:
        messages = check_messages(request, chats=self.chats)
        if request.chat_template is not None:
            raise InvalidInput("chat_template: this handler uses the model's own alone; leave it out")
        return messages, self._chat_params(request)

    def _chat_params(self, request: GenerateRequest | TokenizeRequest) -> ChatParams:
        begins = request.add_generation_prompt
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
        truncate = request.truncate and min(request.truncate, self._context)
        return TokenizeParams(
            max_total_tokens=self._context,
            truncate_prompt_tokens=truncate,
            truncation_side="left" if truncate else None,
            add_special_tokens=request.add_special_tokens,
        )


@contextmanager
def _refusing() -> Iterator[None]:
    """Raise InvalidInput for messages of which the template makes nothing. What is too long is vLLM's own error."""
    try:
        yield
        return
    except InvalidInput:
        raise
    except Exception as error:  # a template is a program: it may fail in any way on messages that it does not expect
        if getattr(error, "parameter", None):
            raise
        reason = error
    raise InvalidInput(f"messages: the model's chat template refuses them: {reason}")


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
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])
    try:
        found = jinja2.meta.find_undeclared_variables(environment.parse(template))
    except jinja2.TemplateError:  # it has marks of Hugging Face's own
        return None
    return tuple(sorted(one for one in found - {"messages", "tools"} if not one.endswith("_token")))
