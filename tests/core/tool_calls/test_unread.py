"""Warnings about models whose calls come as content."""

from __future__ import annotations

import pytest

from msx_core.tool_calls.unread import warn_of_unread_calls
from tests.pages import ROOT


def template(name: str) -> str:
    """One in the manner of a well-known model."""
    return (ROOT / "tests" / "llm" / "text" / "templates" / f"{name}.jinja").read_text()


COHERE = '{% if tools %}Action: ```json[{"tool_name": title, "parameters": dict}]```{% endif %}'


@pytest.mark.parametrize(
    ("template", "parser", "warns"),
    [
        (COHERE, None, True),
        (COHERE, "hermes", False),
        ("{% for tool in tools %}<|call|>{{ tool }}{% endfor %}", None, True),
        ("{{ messages[0].content }}", None, False),
        ("{{ tools }} <tool_call>", None, False),
        ("{{ tools }} <tool_call>{{ call.function | tojson }}</tool_call>", None, False),
        (template("hunyuan"), None, True),
        *((template(name), None, False) for name in ("chatml", "ernie45", "granite", "seed_oss")),
        ('{{ tools }} Respond as {"name": function name, "parameters": dictionary}', None, False),
        ('{{ tools }} {{- "{\\"name\\": \\"" + call.name + "\\", \\"arguments\\": " }}', None, False),
        ("", None, False),
    ],
)
def test_what_nobody_reads_is_told(
    template: str, parser: str | None, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_unread_calls("m", template, parser)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * warns
    assert ("m: the chat template takes tools, and nobody here reads the calls" in caplog.text) == warns
