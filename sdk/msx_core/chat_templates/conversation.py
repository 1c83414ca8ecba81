"""The variables of a chat template, and the prompt that is made of its output."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from msx_core.chat_templates.messages import Message, prepared
from msx_core.errors import InvalidInput


@dataclass(frozen=True)
class Conversation:
    """`values` for a template. `mark` stands at the end of a message that is to be continued; empty otherwise."""

    values: dict[str, Any]
    mark: str = ""

    def prompt(self, written: str) -> str:
        """The template's output up to the mark. Raises InvalidInput if the mark is missing."""
        if not self.mark:
            return written
        before, mark, behind = written.rpartition(self.mark)
        if not mark:
            raise InvalidInput(
                "continue_final_message: the chat template does not write the content of the last message"
            )
        return before if behind.startswith(SPACE) else before.rstrip()


SPACE = " "
"""White space after the mark: a template that strips it, strips it from the end of every message."""


def conversation(
    tokens: Mapping[str, str],
    messages: list[Message],
    tools: list[dict[str, Any]] | None = None,
    /,
    add_generation_prompt: bool | None = None,
    continue_final_message: bool = False,
    **kwargs: Any,
) -> Conversation:
    """`tokens`: `bos_token` and so on. Raises InvalidInput."""
    check_variables(kwargs, tokens)
    ready, mark = prepared(messages), ""
    if continue_final_message:
        mark = _marked(ready, bool(add_generation_prompt))
    begins = not continue_final_message if add_generation_prompt is None else add_generation_prompt
    values = {"documents": None, **tokens, **kwargs, "add_generation_prompt": begins}
    return Conversation({**values, "messages": ready, "tools": tools or None}, mark)


def check_variables(given: Collection[str], tokens: Collection[str]) -> None:
    """Raises InvalidInput for one that a template gets from elsewhere; `tokens`: names of special tokens."""
    if taken := sorted({*given} & {"messages", "tools", *tokens}):
        raise InvalidInput(f"chat_template_kwargs: {taken[0]} cannot be set")


def check_continued(begins: bool) -> None:
    """Raises InvalidInput for a last message that is to be continued where another `begins` behind it."""
    if begins:
        raise InvalidInput("continue_final_message: not together with add_generation_prompt: true")


def _marked(messages: list[Message], begins: bool) -> str:
    """An unguessable mark at the end of the last message."""
    check_continued(begins)
    if not messages or not isinstance(messages[-1].get("content"), str):
        raise InvalidInput("continue_final_message: the last message has no content")
    mark = f"continue-{secrets.token_hex(8)}"
    messages[-1] = {**messages[-1], "content": f"{messages[-1]['content']}{mark}{SPACE}"}
    return mark
