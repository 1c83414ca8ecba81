"""The headers of a request, as its job has them."""

from __future__ import annotations

from functools import cached_property

import msgspec

from msx_core.priorities import HEADER as PRIORITY
from msx_core.priorities import NORMAL, priority_of
from msx_core.request_ids import SESSION
from msx_core.tracing.trace_context import PARENT, PARENT_LENGTH, STATE
from msx_protocol import encode_headers


class KeptHeaders(list[tuple[str, str]]):
    """Headers that many jobs share, and that do not change: their encoding for the worker is made once."""

    @cached_property
    def raw(self) -> msgspec.Raw:
        return encode_headers(self)

    @cached_property
    def priority(self) -> int:
        """The class that the client asks for, which was checked with its key."""
        return next((priority_of(value) for name, value in self if name.lower() == PRIORITY), NORMAL)

    @cached_property
    def session(self) -> str:
        return session_of(self)

    @cached_property
    def trace(self) -> tuple[str, str]:
        return trace_headers(self)

    def with_parent(self, parent: str) -> KeptHeaders:
        """The same with this `traceparent`, in the place of another. What it has in common with others is kept."""
        others, raw = self._without_parent
        made = KeptHeaders(others)
        made.append((PARENT, parent))
        made.raw, made.priority = msgspec.Raw(raw + parent.encode()), self.priority
        return made

    def accepting(self, content_type: str) -> KeptHeaders:
        """The same with this `accept` in the place of the client's; one object for all requests that share these."""
        if (made := self._accepting.get(content_type)) is None:
            made = self._accepting[content_type] = KeptHeaders(_accepting(self, content_type))
        return made

    @cached_property
    def _accepting(self) -> dict[str, KeptHeaders]:
        return {}

    @cached_property
    def _without_parent(self) -> tuple[list[tuple[str, str]], bytes]:
        """And the encoding of it, up to the value of a `traceparent` behind it."""
        others, any = [pair for pair in self if pair[0].lower() != PARENT], "0" * PARENT_LENGTH
        return others, bytes(encode_headers([*others, (PARENT, any)]))[:-PARENT_LENGTH]


def accepting(headers: list[tuple[str, str]], content_type: str) -> list[tuple[str, str]]:
    """The headers with this `accept` in the place of the client's."""
    if isinstance(headers, KeptHeaders):
        return headers.accepting(content_type)
    return _accepting(headers, content_type)


def _accepting(headers: list[tuple[str, str]], content_type: str) -> list[tuple[str, str]]:
    return [*(pair for pair in headers if pair[0].lower() != "accept"), ("accept", content_type)]


def session_of(headers: list[tuple[str, str]]) -> str:
    """The name of the session; "" where the client sent none."""
    return next((value for name, value in headers if name.lower() == SESSION), "")


def trace_headers(headers: list[tuple[str, str]]) -> tuple[str, str]:
    """W3C's `traceparent` and `tracestate`; "" where the client sent none."""
    found = {name.lower(): value for name, value in headers if name.lower() in (PARENT, STATE)}
    return found.get(PARENT, ""), found.get(STATE, "")
