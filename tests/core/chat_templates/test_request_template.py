from __future__ import annotations

import asyncio
from queue import SimpleQueue
from threading import Event
from typing import Any

import pytest

from msx_core.chat_templates import request_template
from msx_core.chat_templates.request_template import RenderTask, RequestTemplates, outcome_of, written_apart
from msx_core.generation.wire import decode, encode
from msx_sdk import InvalidInput
from tests.llm.text.chats import assistant, user

ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"


def outcome(template: str, **values: Any) -> tuple[str | None, str]:
    found = outcome_of(decode(encode(RenderTask(template, values)), RenderTask))
    return found.written, found.failure


def test_in_another_process() -> None:
    templates = RequestTemplates({"bos_token": "<s>"})
    source = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}{{ wide }}|"
    options: dict[str, Any] = {"continue_final_message": True, "wide": 10**30}
    assert asyncio.run(templates.render(source, [user("a"), assistant("b")], None, **options)) == "<s>ab"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{{ raise_exception('Roles must alternate') }}", "Roles must alternate"),
        ("{% if %}", "Expected an expression, got 'end of statement block'"),
        ("{{ 1 / 0 }}", "ZeroDivisionError: division by zero"),
        ("{{ ''.__class__.__mro__ }}", "access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ 'a' * (4194304 + 1) }}", "it writes 4194305 characters, the limit is 4194304"),
    ],
)
def test_what_is_wrong_with_it(source: str, sentence: str) -> None:
    assert outcome(source) == (None, sentence)


def test_its_memory_is_bounded() -> None:
    with pytest.raises(InvalidInput, match="chat_template: it needs more than 512 MiB of memory"):
        written_apart("{{ 'a' * 10**10 }}", {})


def test_its_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_template, "SECONDS", 300)  # its processor time is meant, however busy the machine is
    with pytest.raises(InvalidInput, match="chat_template: it took more than 2 s of processor time"):
        written_apart(ENDLESS, {})


def test_the_time_that_it_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_template, "SECONDS", 0.001)
    with pytest.raises(InvalidInput, match=r"chat_template: it took longer than 0\.001 s"):
        written_apart("x", {})


def test_processes_of_clients_that_left_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else clients that leave at once would have any number of them."""
    begun, may_end = SimpleQueue[str](), Event()

    def written(template: str, values: dict[str, Any]) -> str:
        begun.put(template)
        may_end.wait()
        return template

    async def leave_and_ask_again() -> str:
        templates = RequestTemplates({})
        left = [asyncio.create_task(templates.render(f"{number}", [])) for number in range(request_template.AT_ONCE)]
        for _ in left:
            await asyncio.to_thread(begun.get)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        waits = asyncio.create_task(templates.render("next", []))
        await asyncio.to_thread(lambda: None)  # as long as another thread needs to begin
        has_begun = not begun.empty()
        may_end.set()
        assert not has_begun
        return await waits

    monkeypatch.setattr(request_template, "written_apart", written)
    assert asyncio.run(leave_and_ask_again()) == "next"


def test_what_ends_the_process_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(InvalidInput, match="chat_template: it ended its process, which may have 512 MiB of memory"):
        written_apart("x", {})
