"""vLLM's `truncate_prompt_tokens`: the tokens to which a prompt is cut."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from msx_core.generation import Capabilities
from msx_core.generation.wire import MOST_INTEGER
from msx_frontend.generation.errors import WrongParameter

NAME = "truncate_prompt_tokens"
WHOLE = -1
"""As many tokens as the model reads."""

Truncation = Annotated[int, Meta(ge=WHOLE, le=MOST_INTEGER)]


def most_tokens(asked: int | None, offered: Capabilities) -> int | None:
    """Tokens to which a text is cut; None for one that is refused where it is too long. Raises WrongParameter."""
    if asked == 0:
        raise WrongParameter(NAME, "expected at least 1, or -1 for as many as the model reads")
    return offered.max_input_tokens if asked == WHOLE else asked


def most_beside(asked: int | None, offered: Capabilities, max_tokens: int | None) -> int | None:
    """The same of a prompt that a text of `max_tokens` goes on from: WHOLE leaves room for all of it, where vLLM's
    server would make one token. Raises WrongParameter."""
    most, context = most_tokens(asked, offered), offered.max_total_tokens
    if asked != WHOLE or most is None or context is None or max_tokens is None:
        return most
    return max(1, min(most, context - max_tokens))
