"""Requests common to the checks of several clients."""

PROMPT = "Exceptions are a means of breaking"
TEXT = " out of the normal flow of control of a code block"
"""Text that the small Llama of examples/llama says next, without sampling."""
WIDE = 10**30
"""An integer beyond 64 bits."""
LONG = "The lambda expression " * 200

LOOK_UP = {
    "name": "look_up",
    "description": "What a word means",
    "parameters": {
        "type": "object",
        "properties": {"word": {"enum": ["if", "for"]}, "times": {"type": "integer"}},
        "required": ["word"],
        "additionalProperties": False,
    },
}
TOOLS = [{"type": "function", "function": LOOK_UP}]
MISTRAL = r"\[TOOL_CALLS\]look_up\{\"word\": \"for\"\}"
"""An expression that holds the text to one call, as a model writes it that was taught Mistral's format."""
THOUGHTS = r"<think>hm</think>so"


def user(text):
    return [{"role": "user", "content": text}]


def history():
    """An agent's, whose call had an integer beyond 64 bits."""
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": f'{{"times": {WIDE}}}'}}
    return [
        *user("for"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a loop"},
        *user(PROMPT),
    ]
