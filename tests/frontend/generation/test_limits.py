"""The limits of lists and texts, over all families: refused by name before a worker hears of it."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_core.elements import DEFAULT, limit_to
from msx_core.text_limits import TextLimits, rules_of
from msx_frontend.batches.asked import BatchRequest
from msx_frontend.config import ServerConfig
from msx_sdk.generation import Capabilities
from tests.frontend.generation.speaker import ALL, Speaker, refused
from tests.frontend.generation.test_text_routes import ROUTES
from tests.loops import run

SOURCES = Path(__file__).parents[3] / "frontend" / "msx_frontend"
RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
FORMS = {"_TokenizeForm", "RootRequest"}
"""These choose the struct by which the same body is read again."""
MANY = msgspec.structs.replace(ALL, max_best_of=1000, max_stop_sequences=100)


def structs_that_are_read() -> dict[str, type[msgspec.Struct]]:
    """All kinds that a route of a text API makes of a body."""
    found: dict[str, type[msgspec.Struct]] = {}
    for path in [*SOURCES.glob("generation/*.py"), *SOURCES.glob("apis/*/*.py")]:
        names = re.findall(r"request\.read\((\w+)(?:, strict=False)?\)", path.read_text())
        module = importlib.import_module(
            f"msx_frontend.{path.relative_to(SOURCES).with_suffix('').as_posix().replace('/', '.')}"
        )
        found |= {name: getattr(module, name) for name in names}
    return found


READ = structs_that_are_read()


@pytest.mark.parametrize("kind", READ.values(), ids=READ)
def test_every_list_and_text_has_a_limit(kind: type[msgspec.Struct]) -> None:
    names, _, _, rules = rules_of(kind)
    members = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for name, rule in zip(names, rules, strict=True):
        if rule is None:
            assert "Struct" in repr(msgspec.inspect.type_info(members[name]))


def test_every_route_reads_such_a_struct() -> None:
    described = {route.request_schema for _, route in ROUTES if isinstance(route.request_schema, type)}
    assert {one.__name__ for one in described} <= {*READ, *FORMS, BatchRequest.__name__}
    assert len(READ) >= 14


def test_no_route_decodes_without_limits() -> None:
    """But the forms, which choose, and the operators' routes of adapters."""
    for path in [*SOURCES.glob("generation/*.py"), *SOURCES.glob("apis/*/*.py")]:
        names = set(re.findall(r"\bdecode\(request\.body, (\w+)\)", path.read_text()))
        assert names <= FORMS or path.parent.name == "adapters", path


USER = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "f"}}
CHAT, TEXT, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
TOO_MUCH: list[tuple[str, dict[str, Any], str, str]] = [
    (CHAT, {"messages": USER * 4}, "messages", "max_messages"),
    (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 4}]},
        "messages[0].content",
        "max_message_parts",
    ),
    (CHAT, {"messages": USER, "tools": [TOOL] * 4}, "tools", "max_tools"),
    (
        CHAT,
        {"messages": USER, "chat_template_kwargs": {"a": "abcd"}},
        "chat_template_kwargs",
        "max_template_values_size",
    ),
    (CHAT, {"messages": USER, "stop": ["a"] * 4}, "stop", "max_stop_sequences"),
    (TEXT, {"prompt": "x", "stop": ["abcd"]}, "stop", "max_stop_length"),
    (TEXT, {"prompt": "x", "logit_bias": dict.fromkeys("1234", 1)}, "logit_bias", "max_logit_bias"),
    (TEXT, {"prompt": "x", "bad_words": ["a"] * 4}, "bad_words", "max_bad_words"),
    (TEXT, {"prompt": "x", "bad_words": ["abcd"]}, "bad_words", "max_bad_word_length"),
    (TEXT, {"prompt": "x", "allowed_token_ids": [1] * 4}, "allowed_token_ids", "max_token_ids"),
    (TEXT, {"prompt": "x", "stop_token_ids": [1] * 4}, "stop_token_ids", "max_stop_token_ids"),
    (TEXT, {"prompt": ["x"] * 4}, "prompt", "max_texts_per_request"),
    (TEXT, {"prompt": ["x"] * 2, "n": 2}, "n", "max_texts_per_request"),
    (TEXT, {"prompt": ["x"] * 2, "best_of": 2}, "best_of", "max_texts_per_request"),
    (TEXT, {"prompt": [1] * 4}, "prompt", "max_prompt_token_ids"),
    (TEXT, {"prompt": "x", "guided_choice": ["abcd"]}, "guided_choice", "max_grammar_size"),
    (TEXT, {"prompt": "x", "structured_outputs": {"regex": "abcd"}}, "structured_outputs.regex", "max_grammar_size"),
    (RESPONSES, {"input": USER * 4}, "input", "max_messages"),
    (RESPONSES, {"input": USER, "metadata": {"a": "abcd"}}, "metadata", "max_metadata_size"),
    (RESPONSES, {"input": USER, "include": ["abcd"]}, "include", "max_option_size"),
    ("/v1/embeddings", {"input": ["x"] * 4}, "input", "max_texts_per_request"),
    ("/v1/embeddings", {"input": [[1] * 4]}, "input[0]", "max_prompt_token_ids"),
]
TGI_TOO_MUCH: list[tuple[str, dict[str, Any], str, str]] = [
    ("/generate", {"inputs": "x", "parameters": {"stop": ["abcd"]}}, "parameters.stop", "max_stop_length"),
    (
        "/generate",
        {"inputs": "x", "parameters": {"grammar": {"type": "json"}}},
        "parameters.grammar",
        "max_grammar_size",
    ),
    ("/embed", {"inputs": ["x"] * 4}, "inputs", "max_texts_per_request"),
    (
        "/similarity",
        {"inputs": {"source_sentence": "x", "sentences": ["y"] * 4}},
        "inputs.sentences",
        "max_texts_per_request",
    ),
    ("/decode", {"ids": [1] * 4}, "ids", "max_token_ids"),
    ("/tokenize", {"prompt": "x", "model": "abcd"}, "model", "max_option_size"),
]
LIMITS = TextLimits(**{**dict.fromkeys(TextLimits.__struct_fields__, 3), "max_texts_size": 100_000})


@pytest.mark.parametrize(("path", "body", "name", "key"), TOO_MUCH)
def test_more_than_a_limit_is_refused_by_name(path: str, body: dict[str, Any], name: str, key: str) -> None:
    error = run(refused(Speaker(models={"m": MANY}, limits=LIMITS), path, body, 400))["error"]
    assert error["param"] == name
    assert "at most 3 " in error["message"]
    assert f"{key} of the server's config.properties" in error["message"]


@pytest.mark.parametrize(("path", "body", "name", "key"), TGI_TOO_MUCH)
def test_the_same_in_tgis_and_teis_shape(path: str, body: dict[str, Any], name: str, key: str) -> None:
    said = run(refused(Speaker(models={"m": MANY}, limits=LIMITS), path, body, 422))["error"]
    assert f"{name}: at most 3 " in said
    assert key in said


def test_kserve() -> None:
    body = {"text_input": "x", "parameters": {"stop": "abcd"}}
    said = run(refused(Speaker(limits=LIMITS), "/v2/models/m/generate", body, 400))["error"]
    assert said.startswith("parameters.stop: at most 3 characters")


def test_what_openai_allows_stays_legal() -> None:
    """2,048 prompts with one text each, and one prompt with 128."""
    for body in ({"prompt": ["x"] * 2048}, {"prompt": "x", "n": 128}, {"prompt": ["x"] * 16, "best_of": 128}):
        speaker = Speaker(models={"m": MANY})

        async def test(speaker: Speaker = speaker, body: dict[str, Any] = body) -> None:
            speaker.begin(TEXT, body)
            await speaker.next_job()

        run(test())


@pytest.mark.parametrize("name", ["n", "best_of"])
def test_prompts_times_texts(name: str) -> None:
    error = run(refused(Speaker(models={"m": MANY}), TEXT, {"prompt": ["x"] * 1025, name: 2}, 400))["error"]
    assert error["param"] == name
    assert "1025 prompts with 2 texts each: at most 2048 texts are allowed, not 2050" in error["message"]


@pytest.fixture
def few_elements() -> Iterator[None]:
    limit_to(20)
    yield
    limit_to(DEFAULT)


@pytest.mark.usefixtures("few_elements")
def test_the_elements_of_a_body_are_counted_before_they_are_made() -> None:
    body = {"prompt": ["x"] * 20}
    error = run(refused(Speaker(), TEXT, body, 400))["error"]
    assert error["param"] == "request"
    assert "more than 20 texts, lists and objects; max_request_elements" in error["message"]
    assert "max_request_elements" in run(refused(Speaker(), "/embed", {"inputs": ["x"] * 20}, 422))["error"]


def test_the_keys_of_the_server() -> None:
    config = ServerConfig(max_stop_length=5, job_queue_size=7)
    assert config.text_limits == TextLimits(max_stop_length=5)


REQUESTS = [
    (path.stem, number, one) for path in RECORDED for number, one in enumerate(msgspec.json.decode(path.read_bytes()))
]


@pytest.mark.parametrize(
    "sent", [one for *_, one in REQUESTS], ids=[f"{name}-{number}" for name, number, _ in REQUESTS]
)
def test_what_clients_really_send_is_legal(sent: dict[str, Any]) -> None:
    offered: Capabilities = msgspec.structs.replace(MANY, max_input_tokens=100_000)

    async def test() -> None:
        speaker = Speaker(models={"m": offered}, size=1_000_000)
        exchange = speaker.begin(sent["path"], sent["body"])
        while not (speaker.jobs or exchange.ended):
            await asyncio.sleep(0)
        assert speaker.jobs, exchange.body

    run(test())
