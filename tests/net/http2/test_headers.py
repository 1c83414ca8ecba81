from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_net.http2.headers import Headers, content_length, malformed, malformed_fields, why_malformed
from tests.net.http2.peer import REQUEST


def with_field(name: bytes, value: bytes) -> Headers:
    return [*REQUEST, (name, value)]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (REQUEST, None),
        (with_field(b"x-any", b"one  two\x80"), None),
        (with_field(b"x-empty", b""), None),
        ([(b":authority", b"a"), *REQUEST], None),
        (REQUEST[1:], "A request has no ':method'."),
        ([(b":path", b""), *REQUEST[:2]], "A request has no ':path'."),
        ([*REQUEST[:1], *REQUEST], "A request has the header ':method' once, not 2 times."),
        ([(b":status", b"200"), *REQUEST], "A request has the header ':status' never, not 1 times."),
        (with_field(b":authority", b"a"), "A pseudo-header stands behind another header."),
        (with_field(b"X-Upper", b"a"), "'X-Upper' is not a name of a header."),
        (with_field(b"", b"a"), "'' is not a name of a header."),
        (with_field(b"a b", b"a"), "'a b' is not a name of a header."),
        (with_field(b"connection", b"close"), "The header 'connection': 'close' does not exist in HTTP/2."),
        (
            with_field(b"transfer-encoding", b"chunked"),
            "The header 'transfer-encoding': 'chunked' does not exist in HTTP/2.",
        ),
        ([REQUEST[0], REQUEST[1], (b":path", b"p")], "The :path 'p' does not begin with a slash."),
        ([REQUEST[0], REQUEST[1], (b":path", b"*")], "The :path '*' does not begin with a slash."),
        ([(b":method", b"OPTIONS"), REQUEST[1], (b":path", b"*")], None),
        ([(b":authority", b"A:1"), *REQUEST, (b"host", b"a:1")], None),
        ([*REQUEST, (b"host", b"a:1")], None),
        (
            [(b":authority", b"a"), *REQUEST, (b"host", b"b")],
            "The host 'b' is not that of :authority, 'a'.",
        ),
        (with_field(b"content-length", b"+5"), "The content-length is not one number of bytes."),
        (
            [*with_field(b"content-length", b"5"), (b"content-length", b"6")],
            "The content-length is not one number of bytes.",
        ),
        (with_field(b"te", b"gzip"), "The header 'te': 'gzip' does not exist in HTTP/2."),
        (with_field(b"x", b"a\r\nb: c"), "The value of 'x' has a control character, or a blank at an end."),
        (with_field(b"x", b"a\0"), "The value of 'x' has a control character, or a blank at an end."),
        (with_field(b"x", b" a"), "The value of 'x' has a control character, or a blank at an end."),
        (with_field(b"x", b"a\t"), "The value of 'x' has a control character, or a blank at an end."),
        (
            [(b":authority", b"a\n"), *REQUEST],
            "The value of ':authority' has a control character, or a blank at an end.",
        ),
    ],
)
def test_what_is_a_request(headers: Headers, said: str | None) -> None:
    assert malformed(headers) == said


def test_trailers_have_no_pseudo_headers() -> None:
    assert malformed_fields([(b"x", b"y")]) is None
    assert malformed_fields([(b":path", b"/")]) == "':path' is not a name of a header."


@pytest.mark.parametrize(
    ("values", "length"),
    [([], None), ([b"0"], 0), ([b"12", b"12"], 12), ([b"1", b"2"], -1), ([b"-1"], -1), ([b"x"], -1), ([b"9" * 30], -1)],
)
def test_content_length(values: list[bytes], length: int | None) -> None:
    assert content_length([(b"content-length", value) for value in values]) == length


NAMES = [
    b"content-length",
    b":method",
    b":scheme",
    b":path",
    b":authority",
    b":status",
    b"te",
    b"host",
    b"connection",
    b"x-any",
    b"X",
    b"",
]
VALUES = [
    b"5",
    b"6",
    b"-1",
    b"GET",
    b"OPTIONS",
    b"http",
    b"/",
    b"*",
    b"p",
    b"",
    b"trailers",
    b"gzip",
    b"a b",
    b" a",
    b"a\n",
    b"\xff",
]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=8), st.booleans())
def test_the_short_way_says_the_same(headers: Headers, whole: bool) -> None:
    headers = [*REQUEST[:3], *headers] if whole else headers
    assert malformed(headers) == why_malformed(headers)
