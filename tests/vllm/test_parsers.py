"""vLLM's parsers of calls and reasoning, with a stub of vLLM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_sdk.errors import HandlerLoadError
from msx_sdk.generation import CallPiece, MessageDelta, ParseOptions
from msx_sdk.testing import LocalModel
from msx_vllm.handler import VllmHandler
from tests.vllm.cases import Deltas, Refusal, ask

CONFIG: dict[str, Any] = {"toolParser": "vllm:hermes", "reasoningParser": "vllm:qwen3"}
TOOLS = [{"type": "function", "function": {"name": "f"}}]


@pytest.fixture
def config() -> dict[str, Any]:
    return CONFIG


@pytest.fixture
def model(stub: None, here: Path, config: dict[str, Any]) -> Iterator[LocalModel]:
    with LocalModel(VllmHandler, here, config=config) as model:
        yield model


def parsed(model: LocalModel, **request: Any) -> Deltas | Refusal:
    messages = [{"role": "user", "content": "a"}]
    given = {"messages": messages, "tools": TOOLS, "parse": ParseOptions(), "add_special_tokens": False, **request}
    return ask(model, given, {"max_tokens": 5})


def messages_of(model: LocalModel, **request: Any) -> list[MessageDelta | None]:
    deltas = parsed(model, **request)
    assert not isinstance(deltas, Refusal), deltas
    return [delta.message for delta in deltas]


def test_a_stream_is_parsed_piece_by_piece(model: LocalModel) -> None:
    thought, content, first, second, more = messages_of(model)
    assert (thought, content) == (MessageDelta(reasoning="b"), MessageDelta(content="c"))
    assert first is not None
    assert first.calls[0].id.startswith("call_")
    assert second is not None
    assert [(call.number, call.name) for call in (*first.calls, *second.calls)] == [(0, "f"), (1, "f")]
    assert more == MessageDelta(calls=(CallPiece(number=1, arguments="{}"),))
    assert model.handler.owner.llm._engine.asked[-1].skip_special_tokens is False


def test_a_whole_text_is_parsed_at_once(model: LocalModel) -> None:
    (message,) = messages_of(model, stream=False)
    assert message is not None
    assert (message.reasoning, message.content, [one.arguments for one in message.calls]) == ("b", "c", ["{}", "{}"])


def test_reasoning_and_further_calls_are_left_out(model: LocalModel) -> None:
    options = ParseOptions(reasoning=False, parallel=False)
    (message,) = messages_of(model, stream=False, parse=options)
    assert message is not None
    assert (message.reasoning, len(message.calls)) == ("", 1)


def test_without_tools_there_are_no_calls(model: LocalModel) -> None:
    (message,) = messages_of(model, stream=False, tools=None)
    assert message == MessageDelta(reasoning="b", content="cdef")
    assert model.handler.owner.llm._engine.asked[-1].skip_special_tokens is True


def test_a_text_that_nobody_wants_parsed(model: LocalModel) -> None:
    assert set(messages_of(model, parse=None)) == {None}


def test_the_handler_announces_what_it_parses(model: LocalModel) -> None:
    found = model.handler.owner.capabilities()
    assert (found.parses_calls, found.parses_reasoning) == (True, True)
    assert (found.tool_parser, found.reasoning_parser) == ("vllm:hermes", "vllm:qwen3")


def test_tools_that_vllm_does_not_take(model: LocalModel) -> None:
    refusal = parsed(model, tools=[{"type": 5}])
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.message[:32]) == (400, "tools: vLLM does not take them: ")


@pytest.mark.parametrize("config", [{"toolParser": "vllm:broken"}])
def test_a_parser_that_fails(model: LocalModel, config: dict[str, Any]) -> None:
    assert parsed(model) == Refusal(503, "vLLM's parser failed at the text: KeyError('x')")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"toolParser": "vllm:herms"}, "toolParser: vllm:herms is not a parser of this vLLM; did you mean vllm:hermes"),
        ({"reasoningParser": "vllm:zzz"}, "reasoningParser: vllm:zzz is not a parser of this vLLM; it has deepseek_r1"),
        ({"toolParser": "vllm:unfit"}, "toolParser: vllm:unfit: vLLM's parser does not fit the model: the tokenizer"),
        (
            {"toolParser": "vllm:hermes", "reasoningParser": "qwen3"},
            "reasoningParser: qwen3: the server reads reasoning before calls, and toolParser gives the calls to vLLM: "
            "give vllm:qwen3",
        ),
        (
            {"toolParser": "gpt_oss", "reasoningParser": "vllm:qwen3"},
            "reasoningParser: vllm:qwen3: toolParser: gpt_oss reads reasoning, too: leave one of them out",
        ),
    ],
)
def test_parsers_that_are_refused(stub: None, here: Path, config: dict[str, Any], message: str) -> None:
    with pytest.raises(HandlerLoadError, match=re.escape(message)), LocalModel(VllmHandler, here, config=config):
        pass
