from typing import Any


def resolve_chat_template(tokenizer: Any, chat_template: str | None, tools: Any, *, model_config: Any) -> str | None:
    found: str | None = tokenizer.chat_template
    return found
