"""Members of OpenAI's and vLLM's requests that would change the reply and that this server does not have.

They are refused by name: to leave them out would answer with something else than what was asked for.
"""

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from msx_frontend.generation.errors import WrongParameter

UNSERVED = {
    "audio": "not served: this server answers with text",
    "best_of": "not served for messages: n gives several answers",
    "cache_salt": "not served: prompts that begin alike share what was computed; use a server for each tenant instead",
    "conversation": "not served: conversations are not kept; send the whole conversation as input",
    "ec_transfer_params": "not served: each model computes its prompts itself",
    "echo": "not served for messages; join the message and its continuation, or send a prompt to /v1/completions",
    "enable_response_messages": "not served; return_token_ids of /v1/chat/completions gives the tokens",
    "function_call": "not served: send tool_choice",
    "functions": "not served: send them as tools",
    "guided_whitespace_pattern": "not served; write the spaces into a guided_grammar",
    "kv_transfer_params": "not served: each model computes its prompts itself",
    "logits_processors": "not served; logit_bias and bad_words change what is chosen",
    "modalities": "expected text alone: this server answers with text",
    "moderation": "not served: texts are not judged",
    "previous_input_messages": "not served: send the whole conversation as input",
    "prompt": "not served: prompts are not kept; send the text as input",
    "prompt_embeds": "not served: send the prompt as a text or token ids",
    "prompt_logprobs": "not served here; /v1/completions and /v1/chat/completions score a prompt",
    "repetition_detection": "not served; max_tokens and repetition_penalty bound what is repeated",
    "return_tokens_as_token_ids": "not served; return_token_ids gives the ids beside the texts",
    "structural_tag": "not served; hold the text to a json_schema, regex or grammar",
    "suffix": "not served: the text goes on from the prompt's end",
    "thinking_token_budget": "not served; max_tokens bounds the whole text",
    "use_beam_search": "not served here; /v1/completions and /v1/chat/completions search with beams",
    "vllm_xargs": "not served: this server has no extensions of vLLM's",
    "web_search_options": "not served: this server searches nothing",
}
"""Each with what a client may do instead. Members of one route alone stand in its own request."""
NEUTRAL: dict[str, Any] = {"modalities": ["text"], "function_call": "none"}


def refuse(names: Sequence[str], values: Sequence[Any]) -> None:
    """Raises WrongParameter for a value that asks for something."""
    for name, value in zip(names, values, strict=True):
        if value is not None and _asks(name, value):
            raise WrongParameter(name, UNSERVED[name])


@cache
def unserved(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The members of a request that are refused. Another route may serve a member of the same name."""
    return tuple(field.name for field in msgspec.structs.fields(kind) if field.name in UNSERVED and field.type is Any)


@cache
def unserved_values(kind: type[msgspec.Struct]) -> tuple[tuple[str, ...], Callable[[Any], Any], tuple[None, ...]]:
    """These members, what reads them all in one call, and what it gives where none is set."""
    names = unserved(kind)
    return names, attrgetter(*names), (None,) * len(names)


def _asks(name: str, value: Any) -> bool:
    return value is not False and value not in ([], {}, "", NEUTRAL.get(name))
