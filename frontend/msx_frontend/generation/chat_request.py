"""OpenAI's chat request, and the `GenerateRequest` that is made of it."""

from typing import Any

from msx_core.generation import Capabilities, GenerateRequest, TokenizeRequest
from msx_core.generation.wire import Positive
from msx_frontend.generation.calls import keeps_special, parse_options
from msx_frontend.generation.constraint import check_offered
from msx_frontend.generation.conversation_fields import ConversationFields, check_template, unread
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.images.finder import ImageFinder
from msx_frontend.generation.messages import template_messages
from msx_frontend.generation.parameter_names import Names, client_name
from msx_frontend.generation.sampling import TopLogprobs, ignored_of, names_of, sampling_params
from msx_frontend.generation.tools import Tools, tools_of
from msx_frontend.generation.truncation import most_beside
from msx_frontend.models.versions.model_version import ModelVersion

WITHOUT_EFFECT = ("media_io_kwargs", "mm_processor_kwargs", "verbosity")
"""Images are read as the section `vllm:` of the model says; no model has a word for `verbosity`."""


class ChatRequest(ConversationFields, kw_only=True):
    messages: list[dict[str, Any]]
    model: str | None = None
    max_completion_tokens: Positive | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    prompt_logprobs: TopLogprobs | None = None
    return_token_ids: bool | None = None
    verbosity: Any = None
    audio: Any = None
    best_of: Any = None
    echo: Any = None
    function_call: Any = None
    functions: Any = None
    modalities: Any = None
    moderation: Any = None
    web_search_options: Any = None


def asked_tools(asked: ChatRequest) -> Tools:
    return tools_of(asked.tools, asked.tool_choice, asked.parallel_tool_calls)


def chat_names(asked: ChatRequest, tools: Tools) -> dict[str, str]:
    """The client's names of the members of `GenerateRequest`."""
    most = "max_tokens" if asked.max_completion_tokens is None else "max_completion_tokens"
    names = names_of(asked, prompt="messages", max_tokens=most, logprobs="top_logprobs")
    return names if tools.constraint is None else {**names, "constraint": "tools"}


def client_names(asked: ChatRequest, tools: Tools, names: Names) -> dict[str, str]:
    """The same of an API whose requests are made into chat requests: `names` are its own for members of those."""
    return {ours: client_name(theirs, names) for ours, theirs in chat_names(asked, tools).items()}


def chat_tokens(asked: ChatRequest, version: ModelVersion, tools: Tools, images: ImageFinder) -> TokenizeRequest:
    """The request for the tokens of a conversation. Raises WrongParameter and NoChatTemplate; ImagesWanted for images
    that are not ready."""
    check_template(asked, version)
    return TokenizeRequest(
        messages=template_messages(asked.messages, images),
        images=images.images(),
        tools=tools.for_template,
        chat_template_kwargs=asked.template_values,
        add_generation_prompt=asked.add_generation_prompt,
        continue_final_message=bool(asked.continue_final_message),
        chat_template=asked.chat_template,
    )


def chat_ignored(asked: ChatRequest, tools: Tools, version: ModelVersion) -> list[str]:
    """The places of members without effect: limits that are not applied, and what the template does not read.

    Raises WrongParameter where it must be.
    """
    places = ignored_of(asked, version, tools.held)
    return [*places, *unread(asked, version), *(name for name in WITHOUT_EFFECT if getattr(asked, name))]


def chat_generation(
    asked: ChatRequest,
    version: ModelVersion,
    tools: Tools,
    images: ImageFinder,
    adapter: str = "",
    *,
    temperature: float = 1.0,
) -> GenerateRequest:
    """Raises WrongParameter and NoChatTemplate; ImagesWanted for images that are not ready."""
    offered = version.schema.capabilities or Capabilities()
    check_template(asked, version)
    if tools.constraint is not None:
        check_offered("tool_choice", tools.constraint, offered)
    if asked.top_logprobs and not asked.logprobs:
        raise WrongParameter("top_logprobs", "only together with logprobs: true")
    params = sampling_params(
        asked,
        offered,
        temperature=temperature,
        max_tokens=asked.max_completion_tokens,
        logprobs=(asked.top_logprobs or 0) if asked.logprobs else None,
        prompt_top=asked.prompt_logprobs,
        constraint=tools.constraint,
        defaults=offered.sampling,
        keep_special=keeps_special(tools, offered),
    )
    return GenerateRequest(
        messages=template_messages(asked.messages, images),
        images=images.images(),
        adapter=adapter,
        tools=tools.for_template,
        chat_template_kwargs=asked.template_values,
        add_generation_prompt=asked.add_generation_prompt,
        continue_final_message=bool(asked.continue_final_message),
        chat_template=asked.chat_template,
        params=params,
        stream=bool(asked.stream),
        priority=asked.priority or 0,
        truncate=most_beside(asked.truncate_prompt_tokens, offered, params.max_tokens),
        add_special_tokens=bool(asked.add_special_tokens),
        return_prompt_ids=bool(asked.return_token_ids) or asked.told_usage.continuous_usage_stats,
        parse=parse_options(tools, offered, reasoning=asked.include_reasoning),
    )
