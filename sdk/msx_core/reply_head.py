"""Status and headers of one reply, and what HTTP allows of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from msx_core.failures import shortened

MAX_HEAD = 64 << 10
"""The most bytes of a reply's head: many clients refuse larger ones."""
SERVERS_SHARE = 4 << 10
"""Bytes of MAX_HEAD that are reserved for the status line and the server's own headers."""
ROOM = MAX_HEAD - SERVERS_SHARE
"""The most bytes of a handler's phrase and headers."""
PUNCTUATION = 4
"""Bytes of a header in addition to its name and value: a colon, a space and the end of the line."""

CONTENT_TYPE = "content-type"
JSON_TYPE = (CONTENT_TYPE, "application/json")
EVENTS = "text/event-stream"

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, a token."""
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_WITHOUT_BODY = (204, 304)


class _Refused(Exception):
    """HTTP does not allow the head; the text is for the client."""


@dataclass(slots=True)
class ReplyHead:
    """Status and headers of one reply, sent with its first chunk. If HTTP does not allow them, this reply fails
    alone."""

    status: int = 200
    phrase: str = ""
    headers: list[tuple[str, str]] | None = None
    refused: str = ""
    """The first reason for which HTTP does not allow the head; "" if it is valid."""

    def set_status(self, code: Any, phrase: Any) -> None:
        if self.refused:
            return
        try:
            self.status, self.phrase = _status(code), _phrase(phrase)
            self._check_room("a status phrase", len(self.phrase))
        except _Refused as refused:
            self.refused = str(refused)

    def set_header(self, name: Any, value: Any) -> None:
        """A second value for the same name, in any case, replaces the first."""
        if self.refused:
            return
        try:
            header = _header(str(name), str(value))
            others = [pair for pair in self.headers or [] if pair[0].lower() != header[0].lower()]
            self.headers = [*others, header]
            self._check_room(f"the header {_quoted(header[0])}", size_of([header]))
        except _Refused as refused:
            self.refused = str(refused)

    @property
    def has_events(self) -> bool:
        """The reply is marked as server-sent events."""
        return any(_is_type(name) and value.lower().startswith(EVENTS) for name, value in self.headers or [])

    def with_json(self) -> ReplyHead:
        """The head of a JSON reply: `content-type: application/json`, unless the handler has set another type."""
        return PLAIN_JSON if self is PLAIN else self.with_type(JSON_TYPE[1])

    def with_type(self, content_type: str) -> ReplyHead:
        """The head of a reply of this type, unless the handler has set another one."""
        if self.status in _WITHOUT_BODY or any(_is_type(name) for name, _ in self.headers or []):
            return self
        return ReplyHead(self.status, self.phrase, [*(self.headers or []), (JSON_TYPE[0], content_type)])

    def _check_room(self, newest: str, size: int) -> None:
        if len(self.phrase) + size_of(self.headers or []) > ROOM:
            raise _Refused(too_large(newest, size))


PLAIN = ReplyHead()
"""The head of a reply for which the handler has set nothing."""
PLAIN_JSON = ReplyHead(headers=[JSON_TYPE])


def _is_type(name: str) -> bool:
    return name.lower() == CONTENT_TYPE


def _status(code: Any) -> int:
    try:
        status = int(code)
    except (TypeError, ValueError):
        status = 0
    if not 200 <= status <= 599:
        raise _Refused(f"The handler set the status {_quoted(code)}, which is not a final HTTP status (200 to 599).")
    return status


def _phrase(phrase: Any) -> str:
    text = str(phrase)
    if reason := why_not(text):
        raise _Refused(f"The handler set a status phrase that HTTP does not allow: {reason}.")
    return text


def _header(name: str, value: str) -> tuple[str, str]:
    if not _NAME.fullmatch(name):
        raise _Refused(
            f"The handler set the header {_quoted(name)}, which HTTP does not allow: a name is letters, digits and -."
        )
    if reason := why_not(value):
        raise _Refused(f"The handler set the header {_quoted(name)} to what HTTP does not allow: {reason}.")
    return name, value


def why_not(text: str) -> str:
    """The reason for which HTTP does not allow the text; "" if it is allowed."""
    if _CONTROLS.search(text):
        return "it has a control character, such as a line feed"
    if not text.isascii() and max(text) > "\xff":
        return "it has letters beyond Latin-1, which are to be percent-encoded"
    return ""


def size_of(headers: list[tuple[str, str]]) -> int:
    """Bytes on the wire."""
    size = PUNCTUATION * len(headers)
    for name, value in headers:
        size += len(name) + len(value)
    return size


def too_large(what: str, size: int) -> str:
    """The message for a header or phrase of so many bytes that does not fit."""
    return (
        f"The handler set {what} of {size} bytes, and all that it sets of an answer's head may have {ROOM} bytes "
        f"({MAX_HEAD} with the server's own): put large values into the body."
    )


def _quoted(value: Any) -> str:
    return shortened(repr(value), 80)
