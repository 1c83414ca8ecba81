"""Texts that models of several families are held to say, with their meaning: a call of a tool, then thoughts."""

TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "What a word means",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}
ARGUMENTS = r"\{\"word\": \"for\"\}"
CALLS = {
    "glm4": rf"look_up\n{ARGUMENTS}",
    "phi3": rf"<\|tool_call\|>\[\{{\"name\": \"look_up\", \"arguments\": {ARGUMENTS}\}}\]<\|/tool_call\|>",
    "gpt_oss": rf"<\|channel\|>commentary to=functions\.look_up <\|constrain\|>json<\|message\|>{ARGUMENTS}<\|call\|>",
    "qwen3": rf"<tool_call>\{{\"name\": \"look_up\", \"arguments\": {ARGUMENTS}\}}</tool_call>",
}
"""By family, as expressions that texts are held to."""
THOUGHTS = {
    "gpt_oss": r"<\|channel\|>analysis<\|message\|>hm<\|end\|><\|start\|>assistant<\|channel\|>final<\|message\|>so",
    "qwen3": r"<think>hm</think>so",
}
MOST = 200
"""Tokens of a text: a letter is one."""
PROMPT = "Exceptions are " * 8
"""Behind which the adapters of `adapted` say something else than the model alone."""
ADAPTERS = ("one", "two")


def all_differ(texts):
    return len({*texts}) == len(texts)
