"""Base64 as clients write it, and members of bytes in typed requests."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

import pytest

from msx_core import base64_text
from msx_core.base64_text import decode_base64, decode_long_base64
from msx_core.typed.codec import Misfit, codec_of

DATA = bytes(range(256)) * 2
LINES = base64.encodebytes(DATA).decode()
FORMS = [
    pytest.param(base64.b64encode(DATA).decode(), id="one line"),
    pytest.param(LINES, id="lines of 76"),
    pytest.param(LINES.replace("\n", "\r\n"), id="lines of MIME"),
    pytest.param(" \t" + LINES.replace("\n", " ") + "\v\f", id="other white space"),
]
REFUSED = ["QUI", "QU-_", "QUJD!", "QU\u00a0JD", "Q===", "QUJD=\nQUJD"]


@pytest.mark.parametrize("text", FORMS)
def test_white_space_is_skipped(text: str) -> None:
    assert decode_base64(text) == DATA


@pytest.mark.parametrize("text", [*REFUSED, 5, None, b"QUJD"])
def test_what_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_base64(text)


@pytest.mark.parametrize("text", [*FORMS, "", "QQ=="])
def test_long_texts_in_slices(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base64_text, "SLICE", 8)
    assert decode_long_base64(text) == decode_base64(text)


@pytest.mark.parametrize("text", [*REFUSED, "QUJDQQ==QUJD", "QUJDQUJDQ"])
def test_long_texts_that_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base64_text, "SLICE", 8)
    with pytest.raises(ValueError, match=r".+"):
        decode_long_base64(text)


@dataclass
class Item:
    image: bytes


@dataclass
class Query:
    image: bytes = b""
    images: list[bytes] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    named: dict[str, bytes] = field(default_factory=dict)
    text: str = ""


@pytest.mark.parametrize("text", FORMS)
def test_members_of_bytes(text: str) -> None:
    found = codec_of(Query, "handle").convert(
        {
            "image": text,
            "images": ["QUJD", text, text],
            "items": [{"image": text}] * 3,
            "named": {"a": text, "b.c": text},
            "text": "a text\nkeeps its lines",
        }
    )
    assert found == Query(
        DATA, [b"ABC", DATA, DATA], [Item(DATA)] * 3, {"a": DATA, "b.c": DATA}, "a text\nkeeps its lines"
    )


@pytest.mark.parametrize("text", REFUSED)
def test_a_member_that_is_no_base64_is_named(text: str) -> None:
    with pytest.raises(Misfit, match=r"^items\[1\]\.image: invalid base64"):
        codec_of(Query, "handle").convert({"items": [{"image": "QU\nJD"}, {"image": text}]})
