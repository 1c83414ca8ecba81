import json

import cohere
import pytest_free as must
from common import LONG, PROMPT, TEXT, TOOLS, user
from server import KEY, URL

client = cohere.ClientV2(api_key=KEY, base_url=URL)
SHORT = {"model": "llama", "max_tokens": 8, "temperature": 0}
SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["loop", "class"]}},
    "required": ["kind"],
    "additionalProperties": False,
}


def chat(content=PROMPT, **options):
    return client.chat(messages=user(content), **(SHORT | options))


def check_1_texts():
    reply = chat()
    (block,) = reply.message.content
    assert TEXT.startswith(block.text)
    assert (reply.finish_reason, reply.usage.tokens.output_tokens) == ("MAX_TOKENS", 8)
    events = list(client.chat_stream(messages=user(PROMPT), **SHORT))
    assert "".join(one.delta.message.content.text for one in events if one.type == "content-delta") == block.text
    assert events[-1].delta.usage.tokens == reply.usage.tokens


def check_2_log_probabilities():
    (told,) = chat(logprobs=True).logprobs
    assert len(told.token_ids) == len(told.logprobs) == 8
    assert all(logprob <= 0 for logprob in told.logprobs)


def check_3_what_the_text_is_held_to():
    form = {"type": "json_object", "json_schema": SCHEMA}
    assert json.loads(chat("for", response_format=form, max_tokens=150).message.content[0].text)["kind"]
    for strict in (False, True):
        reply = chat("for", tools=TOOLS, tool_choice="REQUIRED", strict_tools=strict, max_tokens=250)
        for call in reply.message.tool_calls[:-1]:
            assert json.loads(call.function.arguments)["word"] in ("if", "for")
        assert reply.message.tool_calls[0].function.name == "look_up"


def check_4_tokens():
    first = cohere.Client(api_key=KEY, base_url=URL)
    found = first.tokenize(text=PROMPT, model="llama", offline=False)
    assert len(found.tokens) == len(found.token_strings) > 3
    assert first.detokenize(tokens=found.tokens, model="llama", offline=False).text.strip() == PROMPT


def check_5_errors():
    long = must.raises(cohere.BadRequestError, lambda: chat(LONG))
    assert "maximum context length is" in str(long)
    none = must.raises(
        cohere.BadRequestError, lambda: client.embed(model="llama", texts=["a"], input_type="clustering")
    )
    assert "does not embed text" in str(none)
