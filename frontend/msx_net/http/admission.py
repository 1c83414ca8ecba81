"""Which key a request needs, and whether it has it."""

from __future__ import annotations

from typing import Protocol

from msx_core.priorities import HEADER
from msx_net.http.family import AppRoute
from msx_net.http.head import Head
from msx_net.http.router import Match
from msx_net.keys import ClientKey, Kind, granted_priority

PRIORITY = HEADER.encode()


class ChecksKeys(Protocol):
    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> ClientKey:
        """Raises InvalidKey unless the header carries a valid key of one of these kinds."""


def admitted(tokens: ChecksKeys, match: Match, authorization: str | None) -> ClientKey | None:
    """The key by which a request may pass; None where its route is public.

    Raises InvalidKey.
    """
    return tokens.check_any(match.kinds, authorization) if match.kinds else None


def check_priority(head: Head, key: ClientKey | None) -> None:
    """Raises BadRequest, PriorityNotAllowed."""
    granted_priority(head.header(PRIORITY), key)


def check_model(match: Match, key: ClientKey | None) -> None:
    """Raises ModelNotAllowed, AppNotAllowed where the path names a model or an app that the key is not good for."""
    if key is None or match.route is None:
        return
    if isinstance(match.route.answer, AppRoute):
        key.check_app(match.route.answer.name)
    elif model := match.names.get(match.route.model):
        key.check_model(model)
