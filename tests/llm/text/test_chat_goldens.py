"""Templates in the manner of well-known models, against what Hugging Face transformers makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msx_llm.text import ChatTemplate
from msx_sdk import InvalidInput
from tests.llm.text.chats import CHATS, TEMPLATES, TOKENS

GOLDENS = json.loads(Path(__file__).with_name("goldens.json").read_text("utf-8"))


@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_like_transformers(template: str, chat: str) -> None:
    messages, tools, kwargs = CHATS[chat]
    expected = GOLDENS[template][chat]
    try:
        text = ChatTemplate({"default": TEMPLATES[template]}, TOKENS).render(messages, tools, **kwargs)
    except InvalidInput as error:
        text = "! " + error.message.removeprefix("messages: the model's chat template refuses them: ")
    assert text == expected
