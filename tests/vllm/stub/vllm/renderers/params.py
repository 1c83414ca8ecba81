from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ChatParams:
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenizeParams:
    max_total_tokens: int | None
    truncate_prompt_tokens: int | None = None
    truncation_side: str | None = None
    add_special_tokens: bool = True
