"""Heads of replies that a handler sets, by the rules of HTTP, and their parts that are sent."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest

from msx_core.reply_head import JSON_TYPE, MAX_HEAD, PLAIN, PLAIN_JSON, ROOM, ReplyHead, size_of


def refusal(name: Any, value: Any) -> str:
    head = ReplyHead()
    head.set_header(name, value)
    return head.refused


@pytest.mark.parametrize("value", ["", "a", "a\tb", "caf\xe9", "\x80", "a" * (ROOM - 7)])
def test_a_value_that_goes_out(value: str) -> None:
    assert refusal("X-A", value) == ""


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("X-A", "a\r\nSet-Cookie: x", "it has a control character, such as a line feed"),
        ("X-A", "\x7f", "it has a control character"),
        ("X-A", "\x01", "it has a control character"),
        ("X-A", "日本", "letters beyond Latin-1"),
        ("X-A", "\ud800", "letters beyond Latin-1"),
        ("X A", "a", "a name is letters, digits and -"),
        ("X:", "a", "a name is"),
        ("É", "a", "a name is"),
        ("", "a", "a name is"),
    ],
)
def test_a_header_that_http_does_not_allow(name: str, value: str, why: str) -> None:
    sentence = refusal(name, value)
    assert sentence.startswith(f"The handler set the header {name!r}")
    assert why in sentence


def test_the_first_reason_counts_and_nothing_is_gathered_behind_it() -> None:
    head = ReplyHead()
    head.set_header("X A", "1")
    head.set_status(99, "")
    head.set_header("X-B", "1")
    assert "'X A'" in head.refused
    assert (head.status, head.headers) == (200, None)


def test_headers_have_room_together() -> None:
    head = ReplyHead(phrase="p" * 100)
    for n in range(6):
        head.set_header(f"X-{n}", "v" * 10_000)
    assert (head.refused, size_of(head.headers or [])) == ("", 6 * 10_007)
    head.set_header("x-0", "w" * 10_000)
    assert head.refused == ""
    head.set_header("X-Big", "v" * 2_000)
    assert head.refused == (
        "The handler set the header 'X-Big' of 2009 bytes, and all that it sets of an answer's head may have 61440 "
        "bytes (65536 with the server's own): put large values into the body."
    )
    assert ROOM < MAX_HEAD == 65536


def test_a_name_is_quoted_up_to_a_length() -> None:
    assert len(refusal("n" * 100_000, "v")) < 400


@pytest.mark.parametrize("code", [200, 299, 599, HTTPStatus.CREATED, "204"])
def test_final_statuses(code: Any) -> None:
    head = ReplyHead()
    head.set_status(code, "")
    assert (head.status, head.refused) == (int(code), "")


@pytest.mark.parametrize("code", [100, 199, 600, 0, -1, "x", None])
def test_what_is_not_a_final_status(code: Any) -> None:
    head = ReplyHead()
    head.set_status(code, "")
    assert head.refused == f"The handler set the status {code!r}, which is not a final HTTP status (200 to 599)."


def test_phrases() -> None:
    head = ReplyHead()
    head.set_status(418, "Théière à thé")
    assert (head.phrase, head.refused) == ("Théière à thé", "")
    head.set_status(500, "a\nb")
    assert head.refused.startswith("The handler set a status phrase that HTTP does not allow: it has a control")
    head = ReplyHead()
    head.set_header("X-A", "v" * 60_000)
    head.set_status(500, "p" * 2_000)
    assert head.refused.startswith("The handler set a status phrase of 2000 bytes")


def test_json_says_so_unless_the_handler_says_something_else() -> None:
    assert PLAIN.with_json() == PLAIN_JSON == ReplyHead(headers=[JSON_TYPE])
    assert ReplyHead(201, "Made", [("X-A", "1")]).with_json() == ReplyHead(201, "Made", [("X-A", "1"), JSON_TYPE])
    typed = ReplyHead(headers=[("Content-TYPE", "text/x")])
    assert typed.with_json() is typed
    empty = ReplyHead(204)
    assert empty.with_json() is empty
