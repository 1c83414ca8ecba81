"""Replies of the handler, on their way to the clients."""

from __future__ import annotations

from msx_protocol.message import Message


class Chunk(Message, tag=23):
    """A piece of one reply. `status` is 0, and `headers` empty, on all but the first."""

    number: int
    last: bool
    status: int = 0
    phrase: str = ""
    headers: list[tuple[str, str]] = []


class Answers(Message, tag=27):
    """Whole replies that have the same head, as those of a batch mostly do: `sizes` are their bytes in the body."""

    numbers: list[int]
    sizes: list[int]
    status: int
    phrase: str
    headers: list[tuple[str, str]]


class Failed(Message, tag=24):
    number: int
    status: int
    message: str
    traceback: str
    code: str = ""


class Joined(Message, tag=28):
    """The oldest of the batches that are not answered have begun as one: so many of them."""

    batches: int


class Dropped(Message, tag=25):
    """A cancelled request is gone from the worker."""

    number: int
