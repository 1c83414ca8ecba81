from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msx_llm.text import ChatTemplate
from msx_sdk import InvalidInput
from msx_sdk.errors import HandlerLoadError

USER = [{"role": "user", "content": "Hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


def render(source: str, messages: list[dict[str, Any]] | None = None, **kwargs: Any) -> str:
    return ChatTemplate({"default": source}, {"bos_token": "<s>"}).render(messages or USER, **kwargs)


def folder(path: Path, config: dict[str, Any]) -> Path:
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m['content'] }}{% endfor %}", "<s>[user] Hi"),
        ("{% if add_generation_prompt %}A:{% endif %}", "A:"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("  {% if true %}\nx\n  {% endif %}\ny", "x\ny"),
        ("{{ {'é': '<&>'} | tojson }}", '{"é": "<&>"}'),
        ("{{ {'b': 1, 'a': [2]} | tojson(indent=1) }}", '{\n "b": 1,\n "a": [\n  2\n ]\n}'),
        ("{% generation %}x{{ messages[0].content }}{% endgeneration %}y", "xHiy"),
        ("{{ tools is none }}{{ documents is none }}{{ nothing is defined }}", "TrueTrueFalse"),
        ("{{ strftime_now('%%') }}", "%"),
        ("{% set ns = namespace(n=0) %}{% set ns.n = 3 %}{{ ns.n }}", "3"),
        ("{{ '<b>' }}", "<b>"),
    ],
)
def test_what_templates_can_do(source: str, expected: str) -> None:
    assert render(source) == expected


def test_without_the_beginning_of_an_answer() -> None:
    assert render("{{ add_generation_prompt }}", add_generation_prompt=False) == "False"


def test_further_values() -> None:
    assert render("{{ enable_thinking }}", enable_thinking=False) == "False"


@pytest.mark.parametrize("name", ["messages", "tools", "bos_token"])
def test_values_that_are_taken(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"chat_template_kwargs: {name} cannot be set"):
        ChatTemplate({"default": "x"}, {"bos_token": "<s>"}).render(USER, None, **{name: []})


def test_parts_of_a_message() -> None:
    assert render("{{ messages[0].content }}", [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]) == "Hi"


def test_what_the_template_itself_says() -> None:
    with pytest.raises(InvalidInput, match=r"chat template refuses them: Roles must alternate$"):
        render("{{ raise_exception('Roles must alternate') }}")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ messages[0].nothing.at_all }}", "'dict object' has no attribute 'nothing'"),
        ("{{ 'a' + 1 }}", "TypeError: "),
        ("{{ 1 / 0 }}", "ZeroDivisionError: "),
        ("{% include 'x' %}", "no loader"),
        ("{{ messages.append(1) }}", "is unsafe"),
        ("{{ range(1000000) }}", "Range too big"),
    ],
)
def test_what_goes_wrong_in_a_template(source: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        render(source)
    assert caught.value.message.startswith("messages: the model's chat template refuses them: ")
    assert reason in caught.value.message


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''['__class__']['__base__'] }}",
        "{{ (''|attr('__class__')).mro() }}",
        "{{ raise_exception.__globals__['json'] }}",
        "{{ lipsum.__globals__['os'].popen('id').read() }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{{ messages.__class__.__base__ }}",
        "{{ '{0.__class__.__mro__}'.format(messages) }}",
        "{{ self.__init__.__globals__ }}",
        "{{ (messages|map(attribute='__class__')|list)[0].mro() }}",
        "{{ [].__reduce_ex__(2)[0].__globals__ }}",
    ],
)
def test_nothing_leads_out_of_the_sandbox(source: str) -> None:
    with pytest.raises(InvalidInput, match="chat template refuses them"):
        render(source)


@pytest.mark.parametrize(
    "source",
    ["{{ strftime_now.__globals__ ~ '' }}", "{{ '{x.__globals__}'.format_map({'x': raise_exception}) }}"],
)
def test_what_is_forbidden_is_as_if_it_were_not_there(source: str) -> None:
    assert render(source) == ""


def test_messages_stay_as_they_are() -> None:
    messages = [{"role": "developer", "content": [{"type": "text", "text": "x"}]}]
    render("{{ messages }}", messages)
    assert messages == [{"role": "developer", "content": [{"type": "text", "text": "x"}]}]


def test_a_template_in_the_config(tmp_path: Path) -> None:
    config = {"chat_template": "{{ eos_token }}!", "eos_token": {"content": "</s>"}}
    template = ChatTemplate.from_folder(folder(tmp_path, config))
    assert template is not None
    assert template.render(USER) == "</s>!"


def test_named_templates(tmp_path: Path) -> None:
    named = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "{{ tools[0].function.name }}"}]
    template = ChatTemplate.from_folder(folder(tmp_path, {"chat_template": named}))
    assert template is not None
    assert [template.render(USER), template.render(USER, []), template.render(USER, [TOOL])] == ["plain", "plain", "f"]


def test_a_single_template_sees_the_tools() -> None:
    assert ChatTemplate({"default": "{{ tools | length }}"}, {}).render(USER, [TOOL]) == "1"


def test_templates_in_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates/tool_use.jinja").write_text("tools")
    (tmp_path / "chat_template.jinja").write_text("file é", "utf-8")
    template = ChatTemplate.from_folder(folder(tmp_path, {"chat_template": "config"}))
    assert template is not None
    assert [template.render(USER), template.render(USER, [TOOL])] == ["file é", "tools"]


def test_without_a_template(tmp_path: Path) -> None:
    assert ChatTemplate.from_folder(tmp_path) is None


@pytest.mark.parametrize(
    ("sources", "sentence"),
    [
        ({"default": "{% if %}"}, "The chat template 'default' is not a valid Jinja template: "),
        ({"rag": "x"}, r"None of the chat templates \['rag'\] is called 'default'"),
    ],
)
def test_templates_that_are_none(sources: dict[str, str], sentence: str) -> None:
    with pytest.raises(HandlerLoadError, match=sentence):
        ChatTemplate(sources, {})


def test_the_template_tells_how_calls_are_written() -> None:
    assert ChatTemplate({"default": "x"}, {}).tool_parser == "hermes"
    assert ChatTemplate({"default": "x", "tool_use": "[TOOL_CALLS]"}, {}).tool_parser == "mistral"
