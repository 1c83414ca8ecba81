"""Requests to OpenAI's routes that vLLM's own server and MSX make the same of."""

from __future__ import annotations

from typing import Any, NamedTuple

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
MODEL = "m"
DEFAULTS = {"temperature": 0.7, "top_k": 30, "top_p": 0.95, "repetition_penalty": 1.1}
"""generation_config.json of the model."""
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
HELLO = [{"role": "user", "content": "abc"}]
GREEDY = {"temperature": 0, "max_tokens": 8}


class Body(NamedTuple):
    name: str
    path: str
    members: dict[str, Any]


def completion(name: str, **members: Any) -> Body:
    return Body(name, COMPLETIONS, {"model": MODEL, "prompt": "the sea is", **members})


def chat(name: str, **members: Any) -> Body:
    return Body(name, CHAT, {"model": MODEL, "messages": HELLO, **members})


BODIES = [
    completion("a greedy text", **GREEDY),
    completion("ids", **GREEDY | {"prompt": [5, 6, 7]}),
    completion("several prompts", **GREEDY | {"prompt": ["the sea", "the sky"]}),
    completion("defaults of route and model", seed=1),
    completion("defaults that are given", **GREEDY, top_k=0, top_p=1, repetition_penalty=1),
    completion("temperature, top_p, top_k, min_p", temperature=0.8, top_p=0.9, top_k=40, min_p=0.05, seed=3),
    completion("top_k of all", top_k=-1, seed=3),
    completion("penalties", **GREEDY, frequency_penalty=0.5, presence_penalty=-0.5, repetition_penalty=1.2),
    completion("logit_bias", **GREEDY, logit_bias={"17": 50, "18": -50}),
    completion("several texts", n=3, seed=5, max_tokens=4),
    completion("greedy texts", n=1, **GREEDY, stream=True),
    completion("stop", **GREEDY, stop=["zz", "yy"], include_stop_str_in_output=True),
    completion("one stop", **GREEDY, stop="zz"),
    completion("stop_token_ids", **GREEDY, stop_token_ids=[7, 9]),
    completion("ignore_eos and min_tokens", **GREEDY, ignore_eos=True, min_tokens=3),
    completion("allowed_token_ids", **GREEDY, allowed_token_ids=[10, 11, 12]),
    completion("bad_words", **GREEDY, bad_words=["sea"]),
    completion("special tokens", **GREEDY, skip_special_tokens=False, add_special_tokens=False),
    completion("logprobs", **GREEDY, logprobs=3),
    completion("no others' logprobs", **GREEDY, logprobs=0),
    completion("echo", **GREEDY, echo=True, logprobs=2),
    completion("echo alone", temperature=0, max_tokens=0, echo=True, logprobs=1),
    completion("the last tokens", **GREEDY, truncate_prompt_tokens=2),
    completion("a priority", **GREEDY, priority=3),
    completion("a regular expression", **GREEDY, structured_outputs={"regex": "[ab]+"}),
    completion("a choice", **GREEDY, structured_outputs={"choice": ["yes", "no"]}),
    completion("an object", **GREEDY, response_format={"type": "json_object"}),
    chat("a chat", **GREEDY),
    chat("a chat's defaults", seed=2, max_completion_tokens=4),
    chat("a chat without a limit", temperature=0),
    chat("a chat's logprobs", **GREEDY, logprobs=True, top_logprobs=2),
    chat("a stream", **GREEDY, stream=True),
    chat("a system's message", **GREEDY | {"messages": [{"role": "system", "content": "be"}, *HELLO]}),
    chat("parts", **GREEDY | {"messages": [{"role": "user", "content": [{"type": "text", "text": "abc"}]}]}),
    chat(
        "a text to go on with",
        **GREEDY | {"messages": [*HELLO, {"role": "assistant", "content": "d"}]},
        continue_final_message=True,
        add_generation_prompt=False,
    ),
    chat(
        "a schema",
        **GREEDY,
        response_format={"type": "json_schema", "json_schema": {"name": "it", "schema": SCHEMA}},
    ),
]
