"""Texts that models of several families are held to say, with their meaning: a call of a tool, then thoughts."""

from server import listed

TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "What a word means",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}
ARGUMENTS = r"\{\"word\": \"for\"\}"
KNOWN_CALLS = {
    "glm4": rf"look_up\n{ARGUMENTS}",
    "phi3": rf"<\|tool_call\|>\[\{{\"name\": \"look_up\", \"arguments\": {ARGUMENTS}\}}\]<\|/tool_call\|>",
    "gpt_oss": rf"<\|channel\|>commentary to=functions\.look_up <\|constrain\|>json<\|message\|>{ARGUMENTS}<\|call\|>",
    "qwen3": rf"<tool_call>\{{\"name\": \"look_up\", \"arguments\": {ARGUMENTS}\}}</tool_call>",
    "taught": rf"\[TOOL_CALLS\]look_up{ARGUMENTS}",
}
KNOWN_THOUGHTS = {
    "gpt_oss": r"<\|channel\|>analysis<\|message\|>hm<\|end\|><\|start\|>assistant",
    "qwen3": r"<think>hm</think>",
    "taught": r"<think>hm</think>",
}
ANSWERS = {"gpt_oss": r"<\|channel\|>final<\|message\|>so"}
SERVED = listed()
CALLS = {family: call for family, call in KNOWN_CALLS.items() if family in SERVED}
"""Expressions that texts are held to, by the families that the server has."""
THINKING = {family: thought for family, thought in KNOWN_THOUGHTS.items() if family in SERVED}
THOUGHTS = {family: thought + ANSWERS.get(family, "so") for family, thought in THINKING.items()}
"""They think, then answer."""
THOUGHTS_AND_CALLS = {family: thought + CALLS[family] for family, thought in THINKING.items()}
MOST = 200
"""Tokens of a text: a letter is one."""
PROMPT = "Exceptions are " * 8
"""Behind which the adapters of `adapted` say something else than the model alone."""
ADAPTERS = ("one", "two")


def all_differ(texts):
    return len({*texts}) == len(texts)
