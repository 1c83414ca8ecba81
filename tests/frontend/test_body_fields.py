"""Bodies as fields: forms of both kinds, raw bodies, and everything that can be wrong with them."""

from __future__ import annotations

import contextlib
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msx_core.service_errors import BadRequest
from msx_frontend.body_fields import MOST_FIELDS, fields_of_query, fields_parser, merge_fields, parse_fields
from msx_frontend.job import Field

URL_ENCODED = b"application/x-www-form-urlencoded"
MULTIPART = b"multipart/form-data; boundary=sep"
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"\\\r\n\0'), min_size=1, max_size=20)
VALUES = st.binary(max_size=200).filter(lambda value: b"--sep" not in value)


def part(name: str, data: bytes, *, filename: str | None = None, content_type: str | None = None) -> bytes:
    head = f'Content-Disposition: form-data; name="{name}"'
    head += f'; filename="{filename}"' if filename is not None else ""
    head += f"\r\nContent-Type: {content_type}" if content_type else ""
    return b"--sep\r\n" + head.encode() + b"\r\n\r\n" + data + b"\r\n"


def multipart(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--sep--\r\n"


@pytest.mark.parametrize("kind", [b"application/json", b"image/png", b"text/plain; charset=latin-1"])
def test_anything_else_is_one_field_body_with_its_content_type(kind: bytes) -> None:
    assert parse_fields(kind, b"\x00\xff") == [Field("body", kind.decode(), b"\x00\xff")]


def test_a_body_that_states_no_content_type_could_have_done_so() -> None:
    assert parse_fields(b"", b"") == [Field("body", "", b"")]


def test_an_npy_file_is_not_a_form_though_curl_says_so() -> None:
    body = b"\x93NUMPY\x01\x00=&%+"
    assert parse_fields(URL_ENCODED, body) == [Field("body", URL_ENCODED.decode(), body)]


def test_a_file_keeps_its_content_type_and_a_plain_field_has_none() -> None:
    body = multipart(
        part("image", b"\x89PNG", filename="a.png", content_type="image/png"),
        part("k", b"3", content_type="text/plain"),
        part("file", b"x", filename="x"),
    )
    assert parse_fields(MULTIPART, body) == [
        Field("image", "image/png", b"\x89PNG"),
        Field("k", None, b"3"),
        Field("file", None, b"x"),
    ]


def test_the_last_of_a_name_wins() -> None:
    assert parse_fields(MULTIPART, multipart(part("a", b"1"), part("b", b"2"), part("a", b"3"))) == [
        Field("a", None, b"3"),
        Field("b", None, b"2"),
    ]
    assert parse_fields(URL_ENCODED, b"a=1&b=2&a=3") == [Field("a", None, b"3"), Field("b", None, b"2")]


@pytest.mark.parametrize("kind", [b"Multipart/Form-Data; boundary=sep", b'multipart/form-data;boundary="sep"'])
def test_media_types_know_no_case_and_boundaries_may_be_quoted(kind: bytes) -> None:
    assert parse_fields(kind, multipart(part("a", b"1"))) == [Field("a", None, b"1")]


def test_media_types_are_whole_words() -> None:
    assert parse_fields(URL_ENCODED + b"; charset=UTF-8", b"a=1") == [Field("a", None, b"1")]
    assert parse_fields(b"application/x-www-form-urlencodedish", b"a=1")[0].name == "body"


def test_multipart_without_a_boundary_is_a_raw_body() -> None:
    assert parse_fields(b"multipart/form-data", b"x") == [Field("body", "multipart/form-data", b"x")]


def test_multipart_without_parts() -> None:
    assert parse_fields(MULTIPART, b"--sep--\r\n") == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "closing boundary --sep--"),
        (b"no boundary here", "malformed"),
        (multipart(b"--sep\r\nContent-Type: text/plain\r\n\r\nx\r\n"), "a part has no name"),
        (multipart(b'--sep\r\nContent-Disposition: form-data; filename="x"\r\n\r\nx\r\n'), "a part has no name"),
        (multipart(b"--sep\r\nbad header\x00: x\r\n\r\nx\r\n"), "malformed"),
        (multipart(b"--sep\r\n" + b"a: b\r\n" * 500 + b"\r\nx\r\n"), "malformed"),
    ],
)
def test_malformed_multipart(body: bytes, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        parse_fields(MULTIPART, body)


def test_a_boundary_that_is_too_long() -> None:
    with pytest.raises(BadRequest, match="malformed"):
        parse_fields(b"multipart/form-data; boundary=" + b"x" * 1000, b"--x--")


def test_multipart_cut_off_at_any_byte() -> None:
    body = multipart(part("a", b"1\r\n2", filename="f", content_type="image/png"), part("b", b"3"))
    end = len(body) - len(b"\r\n")  # what follows the last boundary does not matter
    for cut in range(end):
        with pytest.raises(BadRequest):
            parse_fields(MULTIPART, body[:cut])
    assert parse_fields(MULTIPART, body[:end]) == parse_fields(MULTIPART, body)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (URL_ENCODED, b"&".join(b"a%d=1" % n for n in range(MOST_FIELDS + 1))),
        (MULTIPART, multipart(*(part(f"a{n}", b"") for n in range(MOST_FIELDS + 1)))),
    ],
)
def test_a_form_with_too_many_fields(kind: bytes, body: bytes) -> None:
    with pytest.raises(BadRequest, match=f"more than {MOST_FIELDS} fields"):
        parse_fields(kind, body)


def test_a_form_with_just_as_many_fields_as_allowed() -> None:
    body = b"&".join(b"a%d=1" % n for n in range(MOST_FIELDS))
    assert len(parse_fields(URL_ENCODED, body)) == MOST_FIELDS


def test_form_values_are_bytes_as_they_were_sent() -> None:
    fields = parse_fields(URL_ENCODED, b"a=%ff%00&b=x+y&c=&d=%c3%a9&e=\xc3\xa9\xff")
    assert [field.data for field in fields] == [b"\xff\x00", b"x y", b"", b"\xc3\xa9", b"\xc3\xa9\xff"]


def test_a_form_name_that_is_not_a_text_is_replaced() -> None:
    (field,) = parse_fields(URL_ENCODED, b"%ff=1")
    assert field.name == "\ufffd"
    field.name.encode()  # a lone surrogate could not be sent to the worker


def test_fields_of_a_query() -> None:
    assert fields_of_query(b"model_name=m&x=1") == [Field("model_name", None, b"m"), Field("x", None, b"1")]
    assert fields_of_query(b"") == []


def test_merged_fields() -> None:
    one, other = Field("a", None, b"1"), Field("a", None, b"2")
    assert merge_fields([one, Field("b", None, b"")], [other]) == [other, Field("b", None, b"")]


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_multipart_round_trip(values: dict[str, bytes]) -> None:
    body = multipart(*(part(name, data) for name, data in values.items()))
    assert {field.name: field.data for field in parse_fields(MULTIPART, body)} == values


@given(st.dictionaries(NAMES, st.binary(max_size=200), max_size=5))
def test_form_round_trip(values: dict[str, bytes]) -> None:
    body = "&".join(f"{quote_from_bytes(name.encode())}={quote_from_bytes(data)}" for name, data in values.items())
    assert {field.name: field.data for field in parse_fields(URL_ENCODED, body.encode())} == values


@settings(max_examples=300)
@given(st.sampled_from([URL_ENCODED, MULTIPART]), st.binary(max_size=300))
def test_nonsense_is_fields_or_a_bad_request(kind: bytes, body: bytes) -> None:
    for text in (body, multipart(body), b"--sep\r\n" + body):
        try:
            for field in parse_fields(kind, text):
                field.name.encode()
        except BadRequest:
            pass


@given(st.binary(max_size=100))
def test_nonsense_as_content_type(kind: bytes) -> None:
    for text in (kind, b"multipart/form-data; boundary=" + kind, b"multipart/form-data; " + kind):
        with contextlib.suppress(BadRequest):
            parse_fields(text, b"--x\r\n")


def test_a_form_that_is_left_whole() -> None:
    """As a model wants it that says what its bodies are; asked anew for each."""
    whole = [True, False, True]
    parse = fields_parser(URL_ENCODED, lambda: whole.pop(0))
    assert [parse(b"a=1&b"), parse(b"a=1")] == [[Field("body", "", b"a=1&b")], [Field("a", None, b"1")]]
    assert fields_parser(MULTIPART, lambda: True)(b"broken") == [Field("body", "", b"broken")]
    assert parse(b"&" * 2000)[0].name == "body"
    assert fields_parser(b"text/plain", lambda: pytest.fail("no form"))(b"a") == [Field("body", "text/plain", b"a")]
