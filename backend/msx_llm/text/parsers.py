"""The chat template, and the parsers of what it makes a model write."""

from msx_core.chat_templates.chat import ChatTemplate
from msx_core.config import ModelConfig
from msx_core.config.sections import VLLMS
from msx_core.tool_calls.unread import warn_of_unread_calls
from msx_sdk.context import Context
from msx_sdk.errors import HandlerLoadError


def check_parsers(config: ModelConfig) -> None:
    """Raises HandlerLoadError for a parser of vLLM's."""
    for key, name in (("toolParser", config.tool_parser), ("reasoningParser", config.reasoning_parser)):
        if name and name.startswith(VLLMS):
            raise HandlerLoadError(f"{key}: {name} is a parser of vLLM's, which --handler vllm alone has: give another")


def read_chat(context: Context, config: ModelConfig) -> ChatTemplate | None:
    """The model's own template; None where it has none. Raises HandlerLoadError."""
    chat = ChatTemplate.from_folder(context.model_dir)
    if chat is not None:
        warn_of_unread_calls(context.model_name, chat.with_tools, config.tool_parser)
    return chat
