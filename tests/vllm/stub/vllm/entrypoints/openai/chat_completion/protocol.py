from typing import Any

from pydantic import BaseModel, ConfigDict


class ChatCompletionRequest(BaseModel):
    model_config = ConfigDict(extra="allow")

    messages: list[Any]
    tools: list[dict[str, dict[str, Any] | str]] | None = None
    tool_choice: str | None = "none"
    parallel_tool_calls: bool | None = True
    skip_special_tokens: bool = True
    chat_template_kwargs: dict[str, Any] | None = None
