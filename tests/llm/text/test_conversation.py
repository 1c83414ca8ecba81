"""Messages that are continued, by what Hugging Face transformers makes of them in test_chat_goldens and here."""

from __future__ import annotations

from typing import Any

import pytest

from msx_llm.text import ChatTemplate
from msx_sdk import InvalidInput
from tests.llm.text.chats import TEMPLATES, TOKENS, assistant, user

PLAIN = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}[A]{% endif %}"
)
TRIMS = PLAIN.replace("m.content", "m.content | trim")


def render(source: str, *messages: dict[str, Any], **options: Any) -> str:
    return ChatTemplate({"default": source}, TOKENS).render(list(messages), None, **options)


@pytest.mark.parametrize("source", [PLAIN, TRIMS])
@pytest.mark.parametrize("content", ["Once", "<end>", ""])
def test_the_text_goes_on_with_the_last_message(source: str, content: str) -> None:
    prompt = render(source, user("Tell"), assistant(content), continue_final_message=True)
    assert prompt == f"[user]Tell<end>[assistant]{content}"


def test_spaces_at_its_end_are_the_templates() -> None:
    assert render(PLAIN, assistant("Once "), continue_final_message=True) == "[assistant]Once "
    assert render(TRIMS, assistant("Once "), continue_final_message=True) == "[assistant]Once"


def test_a_message_of_any_role() -> None:
    assert render(PLAIN, user("Te"), continue_final_message=True, add_generation_prompt=False) == "[user]Te"


def test_an_answer_is_begun_unless_one_is_continued() -> None:
    assert render(PLAIN, user("x")).endswith("[A]")
    assert render(PLAIN, user("x"), add_generation_prompt=None).endswith("[A]")
    assert not render(PLAIN, user("x"), add_generation_prompt=False).endswith("[A]")


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_real_templates(name: str) -> None:
    template = ChatTemplate({"default": TEMPLATES[name]}, TOKENS)
    whole = template.render([user("Tell"), assistant("Once upon")], None, add_generation_prompt=False)
    begun = template.render([user("Tell"), assistant("Once upon")], None, continue_final_message=True)
    assert begun.endswith("Once upon")
    assert whole.startswith(begun)


@pytest.mark.parametrize(
    ("message", "options", "sentence"),
    [
        (user("x"), {"add_generation_prompt": True}, "not together with add_generation_prompt: true"),
        ({"role": "assistant"}, {}, "the last message has no content"),
    ],
)
def test_what_cannot_be_continued(message: dict[str, Any], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=f"continue_final_message: {sentence}"):
        render(PLAIN, message, continue_final_message=True, **options)


def test_a_template_that_does_not_write_it() -> None:
    with pytest.raises(InvalidInput, match="continue_final_message: the chat template does not write the content"):
        render("nothing", user("x"), continue_final_message=True)


def test_the_messages_stay_as_they_are() -> None:
    messages = [assistant("Once")]
    ChatTemplate({"default": PLAIN}, {}).render(messages, None, continue_final_message=True)
    assert messages == [assistant("Once")]


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("{{ messages }}{{ tools }}{{ bos_token }}{{ raise_exception('x') }}{{ strftime_now('%d') }}", ()),
        (
            "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'low' %}{% endif %}",
            ("reasoning_effort",),
        ),
        ("{% macro f() %}{{ documents }}{% endmacro %}{{ f() }}", ("documents",)),
        (
            "{% set x = 1 %}{{ x }}{% generation %}{{ add_generation_prompt }}{% endgeneration %}",
            ("add_generation_prompt",),
        ),
    ],
)
def test_what_a_template_reads(source: str, variables: tuple[str, ...]) -> None:
    assert ChatTemplate({"default": source}, TOKENS).variables == variables
    both = ChatTemplate({"default": "x", "tool_use": source}, TOKENS)
    assert both.variables == variables
