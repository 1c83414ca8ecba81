"""Chats that are rendered by this project and by Hugging Face transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEMPLATES = {
    path.stem: path.read_text("utf-8") for path in sorted((Path(__file__).parent / "templates").glob("*.jinja"))
}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": 'How it is outside: <b>é</b> & "so" on',
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


SYSTEM = {"role": "system", "content": "Be short.\nBe kind."}
CALL = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Zürich", "days": [1, 2]}}}
CALLED = [
    user("Is it cold?"),
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "-3 °C", "tool_call_id": "1"},
]

CONTINUED = {"continue_final_message": True, "add_generation_prompt": False}

CHATS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]] | None, dict[str, Any]]] = {
    "one question": ([user("  Hi <there> & 'you'\n")], None, {}),
    "with a system": ([SYSTEM, user("Hi"), assistant(" Hello "), user("日本 😀")], None, {}),
    "without the beginning of an answer": ([user("Hi"), assistant("Hello")], None, {"add_generation_prompt": False}),
    "thoughts": ([user("Hi"), assistant("<think>\nhm\n</think>\n\nHello"), user("So?")], None, {}),
    "no thinking": ([user("Hi")], None, {"enable_thinking": False, "date_string": "1 Jan 2026"}),
    "tools": ([SYSTEM, user("Is it cold?")], [WEATHER, WEATHER], {}),
    "a call": (CALLED, [WEATHER], {}),
    "a call and an answer": ([*CALLED, assistant("Yes."), user("Brr")], None, {}),
    "out of turn": ([user("Hi"), user("Hi?")], None, {}),
    "two calls": ([user("Hi"), {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]}], None, {}),
    "a continued answer": ([user("Hi"), assistant("Hello, I")], None, CONTINUED),
    "a continued answer that ends with spaces": ([user("Hi"), assistant("Hello, \n")], None, CONTINUED),
    "continued as it is said above": ([user("So"), assistant("So")], None, CONTINUED),
    "a continued question": ([SYSTEM, user("Is it c")], None, CONTINUED),
    "thinking": ([user("Hi")], None, {"enable_thinking": True, "thinking": True, "thinking_budget": 600}),
    "no thinking with tools": ([SYSTEM, user("Hi")], [WEATHER], {"enable_thinking": False, "thinking_budget": 0}),
    "thoughts of their own": (
        [user("Hi"), {"role": "assistant", "content": "Hello", "reasoning_content": " hm\n"}, user("So?")],
        None,
        {},
    ),
    "two results": (
        [user("Hi"), {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]}, *[CALLED[2]] * 2],
        [WEATHER],
        {},
    ),
    "documents": ([user("Hi")], None, {"documents": [{"title": "a", "text": "<b>"}], "reasoning_effort": "low"}),
}
