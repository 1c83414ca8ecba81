"""The members of a request that are for the chat template, and those that the template does not read."""

from typing import Any

from msx_core.generation import Capabilities
from msx_frontend.generation.errors import NoChatTemplate, WrongParameter
from msx_frontend.generation.sampling import SamplingFields
from msx_frontend.models.versions.model_version import ModelVersion

READ_BY_SERVER = frozenset({"add_generation_prompt", "continue_final_message"})


class ConversationFields(SamplingFields, kw_only=True):
    chat_template_kwargs: dict[str, Any] | None = None
    chat_template: str | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    documents: list[dict[str, Any]] | None = None
    reasoning_effort: str | None = None
    include_reasoning: bool | None = None
    prompt_cache_key: str | None = None
    media_io_kwargs: Any = None
    mm_processor_kwargs: Any = None

    @property
    def template_values(self) -> dict[str, Any]:
        """Members of their own come before those of `chat_template_kwargs`."""
        own = {"documents": self.documents, "reasoning_effort": self.reasoning_effort}
        given = {name: value for name, value in own.items() if value is not None}
        return {**(self.chat_template_kwargs or {}), **given}


def check_template(asked: ConversationFields, version: ModelVersion) -> None:
    """Raises WrongParameter and NoChatTemplate."""
    offered = version.schema.capabilities
    if offered is None:
        return
    if asked.chat_template is not None and not offered.request_templates:
        raise WrongParameter(
            "chat_template",
            "this model uses its own alone; requestChatTemplate: true in its model-config.yaml allows a request's",
        )
    if not offered.chat and asked.chat_template is None:
        raise NoChatTemplate(version.source.name)


def unread(asked: ConversationFields, version: ModelVersion) -> list[str]:
    """The places of members that the template does not read, if that is known."""
    variables = (version.schema.capabilities or Capabilities()).template_variables
    if asked.chat_template is not None or variables is None:
        return []
    own = [name for name in ("documents", "reasoning_effort") if getattr(asked, name) is not None]
    places = {f"chat_template_kwargs.{name}": name for name in asked.chat_template_kwargs or {}}
    read = READ_BY_SERVER.union(variables)
    return [place for place, name in [*zip(own, own, strict=True), *places.items()] if name not in read]
