from __future__ import annotations

from typing import Any

import pytest

from msx_frontend.generation.replies import EventsOfText, event


def value(text: str) -> dict[str, Any]:
    return {"id": "\0", "choices": [{"index": 0, "text": text, "logprobs": None}], "usage": None}


@pytest.mark.parametrize("text", ["", "a", 'é\n\0"\\', "\N{PILE OF POO}", "\0", '","x":"'])
def test_what_is_written_once_changes_nothing(text: str) -> None:
    assert EventsOfText(value).event(text) == event(value(text))


def test_names() -> None:
    assert event({"a": 1}, "response.created") == b'event: response.created\ndata: {"a":1}\n\n'
