"""Checks of a server with one model: this client names none."""

import pytest_free as must
from common import LONG, PROMPT, TEXT
from server import KEY, URL
from text_generation import AsyncClient, Client
from text_generation.errors import ValidationError
from text_generation.types import Grammar, GrammarType, Message

client = Client(URL, headers={"Authorization": f"Bearer {KEY}"}, timeout=60)


def check_2_every_token_has_its_entry():
    details = client.generate(PROMPT, max_new_tokens=4, decoder_input_details=True, top_n_tokens=2).details
    assert (details.prefill[0].text, details.prefill[0].logprob) == ("<s>", None)
    assert all(token.logprob is not None for token in details.prefill[1:])
    assert [len(top) for top in details.top_tokens] == [2] * 4


def check_3_chats():
    """Whole ones: of a stream this client wants `tool_calls` in each delta, which TGI does not send either."""
    reply = client.chat([Message(role="user", content=PROMPT)], max_tokens=8, temperature=0.01)
    assert TEXT.startswith(reply.choices[0].message.content)
    assert reply.system_fingerprint == "llama-1.0"


def check_4_a_text_that_is_too_long():
    error = must.raises(ValidationError, lambda: client.generate(LONG, max_new_tokens=4))
    assert "inputs" in str(error)


def check_6_grammars():
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True, "maxItems": 1}}}
    schema["properties"]["a"]["items"] = {"enum": [1, 2]}
    grammar = Grammar(type=GrammarType.Json, value=schema | {"additionalProperties": False})
    assert client.generate("x", max_new_tokens=60, grammar=grammar).generated_text.startswith("{")
    grammar = Grammar(type=GrammarType.Regex, value=r"\d\d")
    assert client.generate("x", max_new_tokens=10, grammar=grammar).generated_text.isdigit()


def check_8_tgi_keeps_its_own_defaults():
    assert TEXT.startswith(client.generate(PROMPT, max_new_tokens=8).generated_text)
    events = list(client.generate_stream(PROMPT, max_new_tokens=8))
    assert TEXT.startswith("".join(event.token.text for event in events))


async def check_asynchronous():
    api = AsyncClient(URL, headers={"Authorization": f"Bearer {KEY}"}, timeout=60)
    assert TEXT.startswith((await api.generate(PROMPT, max_new_tokens=8)).generated_text)
