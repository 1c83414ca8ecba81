from __future__ import annotations

import pytest

from msx_backend.llm.replies import ReplyText, TextEnd
from msx_backend.llm.text import TextStream
from tests.unit.backend.llm.fakes import make_tokenizer


@pytest.mark.parametrize(
    ("end", "keep_stop", "last_is_text"),
    [
        (None, False, True),
        (TextEnd("length"), False, True),
        (TextEnd("eos"), False, False),
        (TextEnd("eos", spoken=True), False, True),  # a constraint is complete with it
        (TextEnd("stop", 1), False, False),
        (TextEnd("stop", 1), True, True),
    ],
)
def test_whether_the_last_token_belongs_to_the_text(end: TextEnd | None, keep_stop: bool, last_is_text: bool) -> None:
    tokenizer = make_tokenizer()
    text = ReplyText(TextStream(tokenizer, ()), None)
    text.read(4, None, keep_stop)
    text.read(5, end, keep_stop)
    told = "".join(text.parts)
    assert told.endswith(tokenizer.decode([5], True)) == last_is_text
    assert told
