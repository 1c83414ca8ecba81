"""Makes the prompt of a conversation by the model's own template."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError

from msx_core.chat_templates.conversation import conversation
from msx_core.chat_templates.messages import Message
from msx_core.chat_templates.sandbox import environment, failure_of, variables_of
from msx_core.errors import HandlerLoadError, InvalidInput
from msx_core.tokenizer_files import special_tokens, tokenizer_config
from msx_core.tool_calls import format_of_template

DEFAULT, TOOLS = "default", "tool_use"


class ChatTemplate:
    """`sources` by name: `default`, and optionally `tool_use` for requests with tools. `tokens`: `bos_token` and so on.
    Raises HandlerLoadError for a template that is not valid Jinja."""

    def __init__(self, sources: Mapping[str, str], tokens: Mapping[str, str]) -> None:
        self._templates = {name: _compiled(name, source) for name, source in sources.items()}
        if DEFAULT not in self._templates:
            raise HandlerLoadError(f"None of the chat templates {sorted(sources)} is called {DEFAULT!r}")
        self._tokens = dict(tokens)
        self.with_tools = sources.get(TOOLS, sources[DEFAULT])
        """The source of the template for requests with tools."""
        self.tool_parser = format_of_template(self.with_tools)
        """The name of the tool parser: the format in which the model was trained to write calls."""
        self.variables = tuple(
            sorted(set().union(*map(variables_of, sources.values())) - {"messages", "tools", *tokens})
        )
        """The variables that the template reads beyond these."""

    @classmethod
    def from_folder(cls, folder: Path) -> ChatTemplate | None:
        """chat_template.jinja and additional_chat_templates/*.jinja come before `chat_template` of
        tokenizer_config.json, a text or a list of named ones. None if the model does not have one."""
        config = tokenizer_config(folder)
        sources = {**_named(config.get("chat_template")), **_files(folder)}
        return cls(sources, special_tokens(config)) if sources else None

    def render(self, messages: list[Message], tools: list[dict[str, Any]] | None = None, /, **options: Any) -> str:
        """The prompt, special tokens included: it is to be encoded without adding any. `options` as of `conversation`.

        Raises InvalidInput with what the template itself has to say, or where it cannot make anything of the messages.
        """
        asked = conversation(self._tokens, messages, tools, **options)
        template = self._templates.get(TOOLS if tools else DEFAULT, self._templates[DEFAULT])
        return asked.prompt(_rendered(template, asked.values))


def _rendered(template: Template, values: dict[str, Any]) -> str:
    try:
        return template.render(values)
    except Exception as error:  # a template is a program: it may fail in any way on messages that it does not expect
        reason = failure_of(error)
    raise InvalidInput(f"messages: the model's chat template refuses them: {reason}")


def _compiled(name: str, source: str) -> Template:
    try:
        return environment().from_string(source)
    except TemplateError as error:
        raise HandlerLoadError(f"The chat template {name!r} is not a valid Jinja template: {error}") from None


def _named(template: Any) -> dict[str, str]:
    if isinstance(template, str):
        return {DEFAULT: template}
    return {it["name"]: it["template"] for it in template or []}


def _files(folder: Path) -> dict[str, str]:
    more = {path.stem: path for path in sorted(folder.glob("additional_chat_templates/*.jinja"))}
    paths = {**more, DEFAULT: folder / "chat_template.jinja"}
    return {name: path.read_text("utf-8") for name, path in paths.items() if path.is_file()}
