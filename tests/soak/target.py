"""Target of visitors: a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple


class Fault(Exception):
    """Something that a client must not see; the message says what."""


class Target(NamedTuple):
    inference: str
    """http://host:port"""
    grpc: str
    """host:port"""


Visit = Callable[[Target], Awaitable[None]]
