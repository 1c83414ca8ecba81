"""The table of limits: each rule refuses one more than its key allows, with the member's name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from msx_core.generation.plain import request_of_item
from msx_core.text_limits import RULES, TextLimits, TooMuch, check, rules_of
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import (
    Capabilities,
    ClassifyRequest,
    EmbedRequest,
    GenerateRequest,
    SamplingParams,
    TokenizeRequest,
)

KEYS = TextLimits.__struct_fields__
SMALL = TextLimits(**dict.fromkeys(KEYS, 3))


class Asked(msgspec.Struct, kw_only=True):
    stop: str | list[str] | None = None
    prompt: str | list[str | int | list[int]] | None = None
    messages: list[dict[str, Any]] | None = None
    logit_bias: dict[int, float] | None = None
    allowed_token_ids: tuple[int, ...] = ()
    documents: list[str] | None = None
    suffix: Any = None


class Nested(msgspec.Struct, kw_only=True):
    parameters: Asked | None = None


def test_every_key_is_a_limit_of_something() -> None:
    used = {name for rule in RULES.values() for name in rule if name in KEYS}
    assert used == set(KEYS) - {"max_answers_size"}, "that one bounds what a worker answers"


@pytest.mark.parametrize(
    ("member", "value", "name", "key"),
    [
        ("stop", ["a"] * 4, "stop", "max_stop_sequences"),
        ("stop", ["a", "abcd"], "stop", "max_stop_length"),
        ("stop", "abcd", "stop", "max_stop_length"),
        ("prompt", ["a"] * 4, "prompt", "max_texts_per_request"),
        ("prompt", [1] * 4, "prompt", "max_prompt_token_ids"),
        ("prompt", [[1], [1] * 4], "prompt[1]", "max_prompt_token_ids"),
        ("prompt", "abcd", "prompt", "max_texts_size"),
        ("messages", [{}] * 4, "messages", "max_messages"),
        ("messages", [{}, {"content": [1] * 4}], "messages[1].content", "max_message_parts"),
        ("logit_bias", dict.fromkeys(range(4), 1.0), "logit_bias", "max_logit_bias"),
        ("allowed_token_ids", (1,) * 4, "allowed_token_ids", "max_token_ids"),
        ("suffix", {"a": "b"}, "suffix", "max_option_size"),
    ],
)
def test_one_more_is_refused_by_name(member: str, value: Any, name: str, key: str) -> None:
    for asked, prefix in ((Asked(**{member: value}), ""), (Nested(parameters=Asked(**{member: value})), "parameters.")):
        with pytest.raises(TooMuch, match=rf"at most 3 .*; {key} of the server's config.properties") as caught:
            check(asked, SMALL)
        assert caught.value.name == f"{prefix}{name}"


def test_as_much_as_is_allowed_is_taken() -> None:
    limits = TextLimits(**{**dict.fromkeys(KEYS, 3), "max_texts_size": 25})
    check(Asked(stop=["abc"] * 3, prompt=["a"] * 3, logit_bias=dict.fromkeys(range(3), 1.0)), limits)
    check(Asked(prompt=[[1] * 3] * 3, messages=[{"a": [1]}] * 1, allowed_token_ids=(1, 2, 3)), limits)
    check(Asked(), SMALL)


def test_what_is_shorter_as_a_whole_is_not_measured() -> None:
    check(Asked(prompt="abcd"), SMALL, sent=3)
    with pytest.raises(TooMuch, match="at most 3 bytes"):
        check(Asked(prompt="abcd"), SMALL, sent=4)


def test_the_urls_of_images_are_no_texts() -> None:
    limits = TextLimits(max_texts_size=150)
    parts = [{"type": "image_url", "image_url": {"url": "x" * 200}}, {"type": "text", "text": "a"}, 5]
    check(Asked(messages=[{"role": "user", "content": parts}]), limits)
    with pytest.raises(TooMuch, match="at most 150 bytes of JSON are allowed"):
        check(Asked(messages=[{"role": "user", "content": [*parts, {"type": "text", "text": "x" * 100}]}]), limits)


def test_integers_of_any_size_are_measured() -> None:
    check(Asked(suffix=10**400), TextLimits())


@pytest.mark.parametrize("kind", [list[str], str, dict[str, int], list[int] | None, tuple[int, ...], bytes])
def test_a_list_or_text_without_a_limit_is_an_error(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"New.unheard_of needs a limit: a line in RULES"):
        rules_of(msgspec.defstruct("New", [("unheard_of", kind)]))


def test_the_requests_of_handlers_have_limits() -> None:
    for kind in (GenerateRequest, SamplingParams, TokenizeRequest, EmbedRequest, ClassifyRequest):
        assert rules_of(kind).names


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"stop": "x" * 1001}, "stop: at most 1000 characters are allowed, not 1001; max_stop_length"),
        ({"stop": ["x"] * 17}, "stop: at most 16 sequences are allowed, not 17; max_stop_sequences"),
        ({"bad_words": ["x"] * 1025}, "bad_words: at most 1024 words"),
        ({"parameters": {"logit_bias": dict.fromkeys(map(str, range(1025)), 1)}}, "logit_bias: at most 1024 tokens"),
        ({"constraint": {"kind": "regex", "value": "x" * (1 << 18)}}, "constraint.value: at most 262144 bytes"),
    ],
)
def test_plain_predictions(values: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        request_of_item({"body": {"prompt": "x", **values}}, Capabilities(generate=True))
    assert str(caught.value).startswith(said)


def test_plain_predictions_by_the_servers_keys() -> None:
    item = {"body": {"prompt": "x", "stop": "abcd"}}
    request_of_item(item, Capabilities(generate=True))
    with pytest.raises(InvalidInput, match="max_stop_length"):
        request_of_item(item, Capabilities(generate=True), TextLimits(max_stop_length=3))


HALF = "\ud800"


@pytest.mark.parametrize(
    "values",
    [
        {"prompt": HALF},
        {"prompt": [HALF]},
        {"messages": [{"role": "user", "content": HALF}]},
        {"prompt": "x", "tools": [{HALF: 1}]},
        {"prompt": "x", "stop": HALF},
        {"prompt": "x", "logit_bias": {HALF: 1}},
    ],
)
def test_half_of_a_surrogate_pair(values: dict[str, Any]) -> None:
    """Python's JSON has it, which reads the bodies of predictions."""
    with pytest.raises(InvalidInput, match="half of a surrogate pair"):
        request_of_item({"body": values}, Capabilities(generate=True, chat=True))


def test_half_of_a_surrogate_pair_in_an_embedding() -> None:
    with pytest.raises(InvalidInput, match="half of a surrogate pair"):
        request_of_item({"body": {"prompt": HALF}}, Capabilities(embed=True))
