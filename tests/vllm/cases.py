"""Requests that every engine of texts answers alike, whatever the model writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msx_core.generation.wire import decode, encode
from msx_sdk.generation import GENERATE, BeamSearch, Constraint, GenerateDelta, GenerateRequest, SamplingParams, Usage
from msx_sdk.request import InferenceRequest, Part
from msx_sdk.testing import LocalModel

Deltas = list[GenerateDelta]


class Refusal(NamedTuple):
    status: int
    message: str


class Case(NamedTuple):
    name: str
    request: dict[str, Any]
    params: dict[str, Any]
    holds: Callable[[Deltas], object]


class Refused(NamedTuple):
    name: str
    request: dict[str, Any]
    params: dict[str, Any]
    message: str
    """A regular expression for its beginning."""


def text(deltas: Deltas, index: int = 0) -> str:
    return "".join(delta.text for delta in deltas if delta.index == index)


def tokens(deltas: Deltas) -> list[Any]:
    return [token for delta in deltas for token in delta.tokens]


def used(deltas: Deltas) -> Usage:
    return deltas[-1].usage or Usage(prompt=-1, completion=-1)


def same(values: list[str]) -> bool:
    return len(set(values)) == 1


GREEDY = {"temperature": 0.0, "max_tokens": 4}
WHOLE = {"prompt": "abc", "stream": False}

CASES = [
    Case(
        "a stream of tokens",
        {"prompt": "abc"},
        GREEDY,
        lambda it: len(tokens(it)) == 4 and all(one.tokens for one in it),
    ),
    Case("one delta without a stream", WHOLE, GREEDY, lambda it: len(it) == 1 and len(it[0].tokens) == 4),
    Case(
        "usage is the last",
        {"prompt": "abc"},
        GREEDY,
        lambda it: [one.usage is not None for one in it] == [False] * (len(it) - 1) + [True],
    ),
    Case("completion is counted", WHOLE, GREEDY, lambda it: used(it).completion == 4),
    Case("the limit ends it", WHOLE, GREEDY, lambda it: it[-1].finish_reason == "length"),
    Case("prompts of ids", {"prompt": (97, 98), "stream": False}, GREEDY, lambda it: used(it).prompt == 2),
    Case(
        "prompt ids are told",
        {"prompt": (97, 98, 99), "return_prompt_ids": True},
        GREEDY,
        lambda it: it[0].prompt_ids == (97, 98, 99) and not any(one.prompt_ids for one in it[1:]),
    ),
    Case(
        "the last tokens are kept",
        {"prompt": (97, 98, 99), "truncate": 2, "return_prompt_ids": True},
        GREEDY,
        lambda it: it[0].prompt_ids == (98, 99),
    ),
    Case("greedy texts are equal", WHOLE, {**GREEDY, "n": 3}, lambda it: same([text(it, at) for at in range(3)])),
    Case("n texts, each with its end", WHOLE, {"n": 3, "max_tokens": 4, "seed": 1}, lambda it: len(ends(it)) == 3),
    Case("the tokens of n texts", WHOLE, {"n": 3, "max_tokens": 4}, lambda it: used(it).completion == 12),
    Case("the best of", WHOLE, {"best_of": 3, "max_tokens": 4}, lambda it: len(it) == 1 and it[0].index == 0),
    Case(
        "log-probabilities",
        WHOLE,
        {**GREEDY, "logprobs": 2},
        lambda it: all(one.logprob is not None and len(one.top) == 2 and one.bytes for one in tokens(it)),
    ),
    Case("no others asked for", WHOLE, {**GREEDY, "logprobs": 0}, lambda it: all(not one.top for one in tokens(it))),
    Case(
        "log-probabilities of prompts",
        {"prompt": (97, 98, 99), "stream": False},
        {**GREEDY, "prompt_logprobs": True, "prompt_top": 1},
        lambda it: [one.logprob is None for one in it[0].prompt_tokens] == [True, False, False],
    ),
    Case(
        "messages",
        {"messages": [{"role": "user", "content": "abc"}], "add_special_tokens": False},
        GREEDY,
        lambda it: it[-1].finish_reason == "length",
    ),
]

SPELLED = Constraint(kind="regex", value="abc")
LONG: dict[str, Any] = {"prompt": "the cat sat on a mat and " * 18, "stream": False}

COMPUTED = [
    Case("the allowed tokens", WHOLE, {**GREEDY, "allowed_token_ids": (98,)}, lambda it: ids(it) == [98] * 4),
    Case("a bias", WHOLE, {**GREEDY, "logit_bias": {98: 100.0}}, lambda it: ids(it) == [98] * 4),
    Case(
        "a token that ends it",
        WHOLE,
        {**GREEDY, "allowed_token_ids": (98,), "stop_token_ids": (98,)},
        lambda it: (it[-1].finish_reason, it[-1].stop_reason, used(it).completion) == ("stop", 98, 1),
    ),
    Case(
        "a text that ends it",
        {"prompt": "abc"},
        {"temperature": 0.0, "constraint": SPELLED, "stop": ("b",)},
        lambda it: (text(it), it[-1].finish_reason, it[-1].stop_reason) == ("a", "stop", "b"),
    ),
    Case(
        "a text that ends it is kept",
        WHOLE,
        {"temperature": 0.0, "constraint": SPELLED, "stop": ("b",), "keep_stop": True},
        lambda it: text(it) == "ab",
    ),
    Case(
        "a constraint that is met",
        WHOLE,
        {"temperature": 0.0, "constraint": SPELLED},
        lambda it: (text(it), it[-1].finish_reason, it[-1].stop_reason) == ("abc", "eos", None),
    ),
    Case(
        "one of the choices",
        WHOLE,
        {"seed": 1, "constraint": Constraint(kind="choice", value='["yes", "no"]')},
        lambda it: text(it) in ("yes", "no"),
    ),
    Case(
        "a seed for each text",
        WHOLE,
        {"n": 2, "max_tokens": 4, "seed": 5},
        lambda it: seeds(it)[0] == 5 != seeds(it)[1],
    ),
    Case(
        "the best texts of beams",
        WHOLE,
        {"beam_search": BeamSearch(), "n": 2, "max_tokens": 4, "ignore_eos": True},
        lambda it: text(it) != text(it, 1) and used(it).completion == 8 and len(ends(it)) == 2,
    ),
    Case(
        "a text that ends where the context does",
        WHOLE,
        {"max_tokens": 99_999, "fit_context": True, "ignore_eos": True},
        lambda it: 0 < used(it).completion < 99_999 and it[-1].finish_reason == "length",
    ),
    Case("a long prompt", LONG, GREEDY, lambda it: 140 < used(it).prompt < 240),
    Case("its beginning is in the cache", LONG, GREEDY, lambda it: 0 < used(it).cached < used(it).prompt),
    Case(
        "scores of a prompt in the cache",
        LONG,
        {**GREEDY, "prompt_logprobs": True},
        lambda it: [one.logprob is None for one in it[0].prompt_tokens] == [True] + [False] * (used(it).prompt - 1),
    ),
]
"""Requests for engines that compute."""

REFUSED = [
    Refused("a long prompt", {"prompt": "a b " * 5000}, GREEDY, r"prompt: This model's maximum context length is \d+"),
    Refused("too many tokens", {"prompt": "a"}, {"max_tokens": 9999}, r"max_tokens: This model's maximum context"),
    Refused("an unknown token", {"prompt": (97, 99_999)}, GREEDY, r"prompt: 99999 is not a token of this model"),
    Refused("no token", {"prompt": ()}, GREEDY, r"prompt: it has no tokens; give at least one"),
    Refused("the best in a stream", {"prompt": "a"}, {"best_of": 3}, r"best_of: the best 1 of 3 texts cannot be"),
    Refused("fewer than n", WHOLE, {"n": 3, "best_of": 2}, r"best_of: 2 is less than n, 3"),
    Refused("too few tokens", WHOLE, {"min_tokens": 5, "max_tokens": 4}, r"min_tokens: 5 is more than max_tokens, 4"),
    Refused(
        "beams in a stream", {"prompt": "a"}, {"beam_search": BeamSearch()}, r"use_beam_search: not together with str"
    ),
    Refused(
        "a text to go on with, and a new one",
        {
            "messages": [{"role": "assistant", "content": "abc"}],
            "continue_final_message": True,
            "add_generation_prompt": True,
        },
        GREEDY,
        r"continue_final_message: not together with add_generation_prompt: true",
    ),
    Refused(
        "pictures",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/"}}]}]},
        GREEDY,
        r"messages\[0\]\.content\[0\]: this model reads text alone",
    ),
]


def ids(deltas: Deltas) -> list[int]:
    return [token.id for token in tokens(deltas)]


def seeds(deltas: Deltas) -> list[int | None]:
    return [delta.seed for delta in sorted(deltas, key=lambda one: one.index) if delta.finish_reason is not None]


def ends(deltas: Deltas) -> set[int]:
    return {delta.index for delta in deltas if delta.finish_reason is not None}


def ask(model: LocalModel, request: dict[str, Any], params: dict[str, Any]) -> Deltas | Refusal:
    message = GenerateRequest(params=SamplingParams(**params), **request)
    parts = {"body": Part(encode(message), "application/msgpack")}
    reply = model.predict([InferenceRequest("r", parts, operation=GENERATE)])[0]
    if reply.failure is not None:
        return Refusal(reply.failure.status, reply.failure.message)
    return [decode(chunk, GenerateDelta) for chunk in reply.chunks if chunk]
