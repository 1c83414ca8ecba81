"""Bodies and replies of a service that says what they are (`bodies:`, `replies:`), whatever its clients state."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from msx_core.bodies import JSON, Data, malformed, strict
from msx_core.elements import TooManyElements, check_msgpack
from msx_core.errors import InvalidInput, PredictionError
from msx_core.form_fields import FORM
from msx_core.packed import InvalidPacked, Resolve, unpack_sent
from msx_core.reply_head import EVENTS
from msx_core.statuses import PREDICTION_FAILED
from msx_core.typed.media import MSGPACK, says_msgpack
from msx_core.typed.replies import json_bytes, msgpack_bytes

BodyKind = Literal["json", "msgpack", "raw", "form"]
ReplyKind = Literal["json", "msgpack", "raw", "events"]

BINARY = "application/octet-stream"
BODY_TYPES: Mapping[BodyKind, str] = {"json": JSON, "msgpack": MSGPACK[0], "raw": BINARY, "form": FORM}
"""The content type that a worker is told of a body."""
REPLY_TYPES: Mapping[ReplyKind, str] = {"json": JSON, "msgpack": MSGPACK[0], "raw": BINARY, "events": EVENTS}
"""The header `accept` that a worker is told of a request."""
KINDS: Mapping[str, ReplyKind] = {type: kind for kind, type in REPLY_TYPES.items()}

_LINES = re.compile(r"\r\n|\r|\n")
"""The ends of lines of server-sent events (WHATWG HTML, 9.2.6)."""


def declared(field: str, data: Data, content_type: str | None, resolve: Resolve | None = None) -> Any:
    """As `strict`, but MessagePack arrives decoded, too. Raises InvalidInput if it cannot be parsed."""
    if not content_type or not says_msgpack(content_type):
        return strict(field, data, content_type, resolve)
    try:
        check_msgpack(data)
        return unpack_sent(data)
    except (InvalidPacked, TooManyElements) as error:
        raise InvalidInput(malformed(f"{field} ({content_type})", data, error, "MessagePack")) from None


class DeclaredReply:
    """The encoder of replies of this kind: each value, or each piece of a stream, is one document or event."""

    def __init__(self, kind: ReplyKind, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode
        self.content_type = "" if kind == "raw" else REPLY_TYPES[kind]
        """Media type of the reply, unless the handler sets another one."""

    def __call__(self, value: Any) -> bytes:
        """Raises PredictionError for a value that has no such form."""
        return self._encode(value)


def _json(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise _unfit("json", "bytes are not a value of JSON; return text, numbers, lists or dicts, or say replies: raw")
    return json_bytes(value)


def _msgpack(value: Any) -> bytes:
    try:
        return msgpack_bytes(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _unfit("msgpack", str(error)) from None


def _raw(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    raise _unfit("raw", f"it takes bytes or text, not {type(value).__name__}")


def _event(value: Any) -> bytes:
    """One server-sent event: a text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else json_bytes(value).decode()
    return event(text)


def event(text: str, name: str = "") -> bytes:
    """A server-sent event with this text, of the name or without one."""
    head = f"event: {name}\n" if name else ""
    return (head + "".join(f"data: {line}\n" for line in _LINES.split(text)) + "\n").encode()


def _unfit(kind: ReplyKind, why: str) -> PredictionError:
    return PredictionError(PREDICTION_FAILED, f"The reply has no form of replies: {kind}: {why}.")


_FORMS: Mapping[ReplyKind, Callable[[Any], bytes]] = {"json": _json, "msgpack": _msgpack, "raw": _raw, "events": _event}
ENCODERS = {kind: DeclaredReply(kind, encode) for kind, encode in _FORMS.items()}
