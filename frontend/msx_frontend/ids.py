"""Ids of requests."""

from __future__ import annotations

import random

_VERSION_4 = 0x4000_8000_0000_0000_0000
_CLEARED = ~0xF000_C000_0000_0000_0000


def new_request_id() -> str:
    """A UUID of version 4, at a quarter of what `uuid.uuid4` costs. It names a request; it is no secret."""
    text = f"{random.getrandbits(128) & _CLEARED | _VERSION_4:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
