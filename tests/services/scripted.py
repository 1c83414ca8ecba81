"""A language model that follows a script which the conversation brings, for agents that run tools.

A message of the user has the script between `<script>` and `</script>`: a JSON array of texts and of calls of tools,
`{"name": …, "arguments": …}`. Each result of a tool is a step of it. A conversation without one gets a word.
"""

import json
import re

from msx_sdk.generation import Capabilities, GenerateDelta, TextSpan, Token, TokenizeReply, Usage
from msx_sdk.text_generation import TextGenerationHandler

CONTEXT = 200_000
SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
WORD = re.compile(r"\s*\S+|\s+$")


class Scripted(TextGenerationHandler):
    def capabilities(self):
        return Capabilities(generate=True, chat=True, tokenize=True, max_total_tokens=CONTEXT)

    async def generate(self, request, context):
        words = WORD.findall(answer(request.messages or []))
        for place, word in enumerate(words):
            last = place == len(words) - 1
            yield GenerateDelta(
                text=word,
                tokens=(Token(id=place + 1, text=word, logprob=0.0),),
                finish_reason="eos" if last else None,
                usage=Usage(prompt=len(spans(request.messages)), completion=len(words)) if last else None,
            )

    async def tokenize(self, request, context):
        return TokenizeReply(tokens=spans(request.messages), text=json.dumps(request.messages))


def answer(messages):
    script = next((found for one in messages if (found := SCRIPT.search(text_of(one)))), None)
    if script is None:
        return "none"
    step = json.loads(script[1])[sum(one["role"] == "tool" for one in messages)]
    return step if isinstance(step, str) else f"<tool_call>\n{json.dumps(step)}\n</tool_call>"


def text_of(message):
    """The text of a message of the user, whose content may have parts."""
    if message["role"] != "user":
        return ""
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def spans(messages):
    words = WORD.finditer(json.dumps(messages))
    return [TextSpan(id=1, text=word[0], start=word.start(), stop=word.end()) for word in words]
