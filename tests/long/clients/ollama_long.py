import json

import ollama
import pytest_free as must
from common import LONG, PROMPT, TEXT, TOOLS, user
from server import KEY, URL

client = ollama.Client(URL, headers={"Authorization": f"Bearer {KEY}"})
SHORT = {"temperature": 0, "num_predict": 8}
FORM = {
    "type": "object",
    "properties": {"kind": {"enum": ["loop", "class"]}},
    "required": ["kind"],
    "additionalProperties": False,
}


def chat(content=PROMPT, **options):
    messages = content if isinstance(content, list) else user(content)
    return client.chat("llama", messages, **({"options": SHORT} | options))


def check_1_models():
    assert {"llama:latest", "taught:latest"} & {model.model for model in client.list().models}
    assert "completion" in client.show("llama").capabilities


def check_2_texts():
    reply = chat()
    assert TEXT.startswith(reply.message.content)
    assert (reply.done_reason, reply.eval_count) == ("length", 8)
    assert "".join(part.message.content for part in chat(stream=True)) == reply.message.content
    raw = {"raw": True, "options": SHORT}
    whole = client.generate("llama", PROMPT, **raw).response
    assert whole
    assert "".join(part.response for part in client.generate("llama", PROMPT, stream=True, **raw)) == whole


def check_3_what_the_text_is_held_to():
    reply = chat("for", format=FORM, options={"temperature": 0, "num_predict": 150})
    assert json.loads(reply.message.content)["kind"] in ("loop", "class")


def check_4_tools():
    call = {"function": {"name": "look_up", "arguments": {"word": "for"}}}
    said = [*user("for"), {"role": "assistant", "content": "", "tool_calls": [call]}]
    result = {"role": "tool", "tool_name": "look_up", "content": "a loop"}
    assert chat([*said, result, *user(PROMPT)], tools=TOOLS).eval_count == 8


def check_5_errors():
    assert "maximum context length is" in str(must.raises(ollama.ResponseError, lambda: chat(LONG)))
    assert "embed" in str(must.raises(ollama.ResponseError, lambda: client.embed("llama", "a")))
