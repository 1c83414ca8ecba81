"""Ids of requests, and the header that names their session."""

import os
import re

SESSION = "x-session-id"
"""The header that names the session of a request: those of one session go to one worker of a language model."""

_GIVEN = re.compile(rb"[A-Za-z0-9._:\-]{1,128}")

_MANY = 256
_FORM = b"xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx\n"
_DIGITS = [at for at, sign in enumerate(_FORM) if sign in b"xv"]
_VARIANT = _FORM.index(b"v")
_TO_VARIANT = bytes.maketrans(b"0123456789abcdef", b"89ab" * 4)

_ready: list[str] = []


def valid_request_id(given: bytes | None) -> str | None:
    """The client's `x-request-id`, if a log line may contain it unchanged."""
    return given.decode() if given is not None and _GIVEN.fullmatch(given) else None


def new_request_id() -> str:
    """A UUID of version 4. Many are made at once, which costs a twentieth of `uuid.uuid4` for each."""
    try:
        return _ready.pop()
    except IndexError:
        _ready.extend(_make(_MANY))
        return _ready.pop()


def _make(count: int) -> list[str]:
    """Makes one digit of all ids at a time, which runs in C."""
    digits = os.urandom(16 * count).hex().encode()
    text = bytearray(_FORM * count)
    for number, at in enumerate(_DIGITS):
        text[at :: len(_FORM)] = digits[number * count : (number + 1) * count]
    text[_VARIANT :: len(_FORM)] = text[_VARIANT :: len(_FORM)].translate(_TO_VARIANT)
    return text.decode().splitlines()
