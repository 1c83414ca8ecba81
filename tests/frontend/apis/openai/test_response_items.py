from __future__ import annotations

from typing import Any

import pytest

from msx_core.text_limits import TextLimits
from tests.frontend.generation.speaker import Speaker, events, refused, words
from tests.loops import run

PATH = "/v1/responses"
CALL = {"call_id": "c", "id": "i"}
MADE = {"role": "assistant", "content": ""}
TEXTS = [{"type": "input_text", "text": "U"}]


def made(name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {**MADE, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def result(content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c", "content": content}


TAKEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"role": "user", "content": "U"}, {"role": "user", "content": "U"}),
    ({"type": "message", "role": "developer", "content": TEXTS}, {"role": "system", "content": "U"}),
    (
        {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "A"}]},
        {"role": "assistant", "content": "A"},
    ),
    ({"type": "function_call", **CALL, "name": "f", "arguments": '{"a": 1}'}, made("f", {"a": 1})),
    ({"type": "function_call_output", **CALL, "output": TEXTS}, result("U")),
    ({"type": "custom_tool_call", **CALL, "name": "g", "input": "raw"}, made("g", {"input": "raw"})),
    ({"type": "custom_tool_call_output", **CALL, "output": "sunny"}, result("sunny")),
    ({"type": "local_shell_call", **CALL, "action": {"command": ["ls"]}}, made("local_shell", {"command": ["ls"]})),
    ({"type": "local_shell_call_output", "id": "c", "output": "files"}, result("files")),
    ({"type": "shell_call", **CALL, "action": {"commands": ["ls"]}}, made("shell", {"commands": ["ls"]})),
    ({"type": "shell_call_output", **CALL, "output": [{"stdout": "files"}]}, result('[{"stdout":"files"}]')),
    ({"type": "apply_patch_call", **CALL, "operation": {"path": "p"}}, made("apply_patch", {"path": "p"})),
    ({"type": "apply_patch_call_output", **CALL, "output": "done"}, result("done")),
]
"""Items that a message is made of, and the message."""
LEFT_OUT = (
    "file_search_call",
    "computer_call",
    "computer_call_output",
    "web_search_call",
    "tool_search_call",
    "configuration_update",
    "compaction",
    "image_generation_call",
    "code_interpreter_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "compaction_trigger",
    "program",
    "program_output",
    "a_later_type",
)
"""Types of items without effect, which the reply names."""


def ask(items: list[dict[str, Any]], **body: Any) -> tuple[list[dict[str, Any]], str, Any]:
    """The messages, the places without effect, and the reply."""

    async def test() -> Any:
        exchange = await speaker.ask(PATH, {"input": items, **body}, x_request_id="r")
        assert exchange.status == 200, exchange.body
        reply = events(exchange)[-1]["response"] if body.get("stream") else exchange.json
        return speaker.asked[0].messages, exchange.headers.get("x-msx-ignored", ""), reply

    speaker = Speaker([words(body.pop("says", "a"))])
    found: tuple[list[dict[str, Any]], str, Any] = run(test())
    return found


@pytest.mark.parametrize(("item", "message"), TAKEN, ids=lambda one: str(one.get("type")))
def test_an_item_is_a_message(item: dict[str, Any], message: dict[str, Any]) -> None:
    messages, ignored, _ = ask([{"role": "user", "content": "first"}, item])
    assert (messages[1:], ignored) == ([message], "")


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_an_item_that_no_model_here_reads_is_left_out_and_told(kind: str) -> None:
    messages, ignored, _ = ask([{"role": "user", "content": "U"}, {"type": kind, **CALL, "output": {"x": 1}}])
    assert (messages, ignored) == ([{"role": "user", "content": "U"}], "input[1]")


def test_what_a_model_said_in_a_row_is_one_message() -> None:
    call = {"type": "function_call", "name": "f", "arguments": "{}"}
    messages, ignored, _ = ask(
        [
            {"role": "user", "content": "U"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"role": "assistant", "content": "Well."},
            {**call, "call_id": "c"},
            {**call, "call_id": "d"},
            {"type": "function_call_output", "call_id": "c", "output": "1"},
            {"type": "function_call_output", "call_id": "d", "output": "2"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}], "encrypted_content": "x"},
            {**call, "call_id": "e"},
        ]
    )
    _, first, one, two, second = messages
    assert (first["reasoning_content"], first["content"]) == ("hm", "Well.")
    assert [call["id"] for call in first["tool_calls"]] == ["c", "d"]
    assert (one["tool_call_id"], two["tool_call_id"]) == ("c", "d")
    assert (second["reasoning_content"], second["content"], second["tool_calls"][0]["id"]) == ("so", "", "e")
    assert ignored == ""


def test_reasoning_is_of_the_answer_behind_it_alone() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    messages, _, _ = ask([thought, {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}])
    assert all("reasoning_content" not in message for message in messages)


@pytest.mark.parametrize("wrong", [3, "x", {"text": "x"}, [3], [{"text": 3}]])
def test_reasoning_without_texts_is_none(wrong: Any) -> None:
    messages, _, _ = ask([{"role": "user", "content": "U"}, {"type": "reasoning", "content": wrong}, TAKEN[2][0]])
    assert "reasoning_content" not in messages[-1]


def test_a_reference_to_an_item_is_refused_where_none_are_kept() -> None:
    async def test(item: dict[str, Any]) -> None:
        error = (await refused(Speaker([words("a")]), PATH, {"input": [TAKEN[0][0], item]}, 400))["error"]
        assert error["param"] == "input[1]"
        assert "responses_store=true" in error["message"]
        assert error["message"].endswith("Send the item itself.")

    run(test({"type": "item_reference", "id": "msg_1"}))
    run(test({"id": "msg_1"}))


TOOLS = [
    {"type": "web_search"},
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {
        "type": "namespace",
        "name": "birds",
        "description": "Of birds",
        "tools": [
            {"type": "function", "name": "f"},
            {"type": "function", "name": "g"},
            {"type": "custom", "name": "h"},
        ],
    },
]


def call_of(name: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'


@pytest.mark.parametrize("stream", [False, True])
def test_functions_of_a_namespace_are_offered_by_name(stream: bool) -> None:
    async def test() -> None:
        exchange = await speaker.ask(PATH, {"input": "hi", "tools": TOOLS, "stream": stream})
        reply = events(exchange)[-1]["response"] if stream else exchange.json
        assert exchange.headers["x-msx-ignored"] == "tools[0], tools[2].tools[2]"
        assert [tool["function"]["name"] for tool in speaker.asked[0].tools] == ["f", "birds__f", "g"]
        outside, within, other = reply["output"]
        assert (outside["name"], outside.get("namespace")) == ("f", None)
        assert (within["name"], within["namespace"]) == ("f", "birds")
        assert (other["name"], other["namespace"]) == ("g", "birds")
        assert reply["tools"][0] == {"type": "web_search"}

    speaker = Speaker([words(call_of("f"), call_of("birds__f"), call_of("g"))])
    run(test())


def test_a_call_of_a_namespace_comes_back_by_the_name_that_the_model_knows() -> None:
    call = {"type": "function_call", "call_id": "c", "namespace": "birds", "name": "f", "arguments": "{}"}
    messages, _, _ = ask([{"role": "user", "content": "U"}, call], tools=TOOLS)
    assert messages[1]["tool_calls"][0]["function"]["name"] == "birds__f"


def test_tools_of_items_are_offered() -> None:
    async def test() -> None:
        tools = [{"type": "function", "name": "later"}]
        items = [
            {"role": "user", "content": "U"},
            {"type": "additional_tools", "role": "developer", "tools": tools},
            {"type": "tool_search_output", "call_id": "c", "tools": [{"type": "function", "name": "found"}]},
        ]
        exchange = await speaker.ask(PATH, {"input": items})
        assert (exchange.status, exchange.headers.get("x-msx-ignored")) == (200, None)
        assert [tool["function"]["name"] for tool in speaker.asked[0].tools] == ["later", "found"]

    speaker = Speaker([words("a")])
    run(test())


def test_tools_are_counted_wherever_they_are_offered() -> None:
    async def test() -> None:
        later = {"type": "additional_tools", "tools": [{"type": "function", "name": "one_more"}]}
        body = {"input": [{"role": "user", "content": "U"}, later], "tools": TOOLS}
        speaker = Speaker([words("a")], limits=TextLimits(max_tools=3))
        error = (await refused(speaker, PATH, body, 400))["error"]
        assert error["message"].startswith("input[1].tools[0]: at most 3 tools are allowed, not 4; max_tools of")

    run(test())


def test_allowed_tools_are_offered_alone() -> None:
    async def test() -> None:
        choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]}
        exchange = await speaker.ask(PATH, {"input": "hi", "tools": TOOLS, "tool_choice": choice})
        assert exchange.status == 200, exchange.body
        assert [tool["function"]["name"] for tool in speaker.asked[0].tools] == ["g"]

    speaker = Speaker([words("a")])
    run(test())


def test_a_function_of_a_namespace_can_be_chosen() -> None:
    choice = {"type": "function", "namespace": "birds", "name": "f"}
    _, _, reply = ask([{"role": "user", "content": "U"}], tools=TOOLS, tool_choice=choice, says="{}")
    (call,) = reply["output"]
    assert (call["name"], call["namespace"], call["arguments"]) == ("f", "birds", "{}")


def test_store_without_a_store_is_told() -> None:
    assert ask([{"role": "user", "content": "U"}], store=True)[1] == "store"
    assert ask([{"role": "user", "content": "U"}], store=False)[1] == ""
